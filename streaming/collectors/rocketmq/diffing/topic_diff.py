"""Shell: the changes of a RocketMQ cluster's topics, as events. Pure.

Consumers share the queues of the name servers' routes. But a restarted name server has no routes until the brokers
register again, which takes up to 30 s, and it drops the routes of a broker whose connection breaks, though that may be
back before any consumer reads the route. So a topic loses queues at once only if its broker reports it itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from streaming.collectors.rocketmq.polling.route_schedule import readable
from streaming.collectors.rocketmq.polling.survey import ObservedBroker, RememberedTopic, Survey
from streaming.collectors.rocketmq.remoting.messages import TopicRoute
from udfs.model.events import MAX_QUEUE_COUNT, QueueInfo, TopicQueues, event_fields

_SYSTEM: Final = "rocketmq"


def diff_topics(
    remembered: Mapping[str, RememberedTopic], survey: Survey, missing: Collection[str], cluster: str
) -> tuple[list[TopicQueues], dict[str, RememberedTopic]]:
    """Compare routes with the reported topics.

    Args:
        missing: Brokers that were unavailable for longer than consumers take to refresh routes.
    Returns: The changes, and the new state.
    """
    now = dict(remembered)
    events: list[TopicQueues] = []
    for topic in sorted(survey.topics):
        before, observed = remembered.get(topic), survey.topics[topic]
        after = _after(topic, before, observed.route, survey.brokers, missing)
        if after is None:
            if before is None:
                continue
            if not before.is_missing:
                now[topic] = RememberedTopic(before.queues, before.is_static, is_missing=True)
                continue
            del now[topic]
        else:
            now[topic] = after
        if before is None or after is None or (before.queues, before.is_static) != (after.queues, after.is_static):
            # Topics that existed before the first round are reported before the groups that consume them.
            events.append(_event(topic, after, survey.began_ms if before is None else observed.at_ms, cluster))
    return events, now


def _after(
    topic: str,
    before: RememberedTopic | None,
    route: TopicRoute | None,
    brokers: Mapping[str, ObservedBroker],
    missing: Collection[str],
) -> RememberedTopic | None:
    """Return a topic's current state; None if it has no queues left, or was never reported and has no readable ones."""
    if route is not None and route.is_static:
        queues: dict[str, int] = {}
        for queue in route.readable_queues():
            queues[queue.broker_name] = max(queues.get(queue.broker_name, 0), queue.queue_id + 1)
        return RememberedTopic(_within_bounds(queues), is_static=True)
    routed = {data.broker_name: data for data in route.queues} if route is not None else {}
    queues = {name: data.read_queue_nums for name, data in routed.items() if data.is_readable}
    if before is not None and not before.is_static:
        for name, count in before.queues.items():
            if name not in routed and _is_held(topic, name, brokers, missing, everywhere=route is None):
                queues[name] = count
    queues = {name: count for name, count in queues.items() if count > 0}
    if queues:
        return RememberedTopic(_within_bounds(queues))
    if before is None:
        return None
    # It may exist without read permission, which is reported like a deletion, but at once.
    return RememberedTopic({}) if route is not None else None


def _is_held(
    topic: str, name: str, brokers: Mapping[str, ObservedBroker], missing: Collection[str], *, everywhere: bool
) -> bool:
    """Return whether a broker's queues still exist, though no route names them.

    Consumers keep their current routes while a name server knows none at all.
    """
    broker = brokers.get(name)
    if broker is None:
        return False
    if broker.topics is None:
        return everywhere or name not in missing
    config = broker.topics.get(topic)
    return config is not None and readable(config) > 0


def _within_bounds(queues: Mapping[str, int]) -> dict[str, int]:
    """Return at most as many queues as an event may carry; the rest is left out."""
    left = MAX_QUEUE_COUNT
    within = {}
    for name in sorted(queues):
        within[name] = min(queues[name], left)
        left -= within[name]
    return {name: count for name, count in within.items() if count > 0}


def _event(topic: str, after: RememberedTopic | None, time_ms: int, cluster: str) -> TopicQueues:
    event = TopicQueues(**event_fields(_SYSTEM, cluster, time_ms), topic=topic)
    if after is None or not after.queues:
        event.queue_count = 0
    else:
        event.queues = tuple(
            QueueInfo(queue_id=number, broker=name)
            for name in sorted(after.queues)
            for number in range(after.queues[name])
        )
    return event
