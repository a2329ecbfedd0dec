"""Shell: what changed in a RocketMQ cluster's topics, as events. Pure.

What consumers share is what name servers tell them. But a name server that has just started knows no routes until the
brokers register again, which takes up to 30 s, and drops those of a broker whose connection breaks, though it may be
back before any consumer has asked. So a topic loses queues at once only where its broker says so itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from streaming.rocketmq.known import KnownTopic
from streaming.rocketmq.model import TopicRoute
from streaming.rocketmq.routes import readable
from streaming.rocketmq.seen import SeenBroker, Survey
from udfs.events import MAX_QUEUE_COUNT, SCHEMA_VERSION, QueueInfo, TopicQueues

_SYSTEM: Final = "rocketmq"


def tell_topics(
    known: Mapping[str, KnownTopic], survey: Survey, gone: Collection[str], cluster: str
) -> tuple[list[TopicQueues], dict[str, KnownTopic]]:
    """Compare routes with what was told.

    Args:
        gone: Brokers that have been away for longer than consumers take to read routes anew.
    Returns: What is new, and what is known now.
    """
    now = dict(known)
    events: list[TopicQueues] = []
    for topic in sorted(survey.topics):
        before, look = known.get(topic), survey.topics[topic]
        after = _after(topic, before, look.route, survey.brokers, gone)
        if after is None:
            if before is None:
                continue
            if not before.is_missing:
                now[topic] = KnownTopic(before.queues, before.is_static, is_missing=True)
                continue
            del now[topic]
        else:
            now[topic] = after
        if before is None or after is None or (before.queues, before.is_static) != (after.queues, after.is_static):
            # What was there before anybody looked is told before the groups that read it.
            events.append(_event(topic, after, survey.began_ms if before is None else look.at_ms, cluster))
    return events, now


def _after(
    topic: str,
    before: KnownTopic | None,
    route: TopicRoute | None,
    brokers: Mapping[str, SeenBroker],
    gone: Collection[str],
) -> KnownTopic | None:
    """Answer a topic as it is now; None: nothing of it is left, or nothing can be read of one never told of."""
    if route is not None and route.is_static:
        queues: dict[str, int] = {}
        for queue in route.readable_queues():
            queues[queue.broker_name] = max(queues.get(queue.broker_name, 0), queue.queue_id + 1)
        return KnownTopic(_within_bounds(queues), is_static=True)
    routed = {data.broker_name: data for data in route.queues} if route is not None else {}
    queues = {name: data.read_queue_nums for name, data in routed.items() if data.is_readable}
    if before is not None and not before.is_static:
        for name, count in before.queues.items():
            if name not in routed and _is_held(topic, name, brokers, gone, everywhere=route is None):
                queues[name] = count
    queues = {name: count for name, count in queues.items() if count > 0}
    if queues:
        return KnownTopic(_within_bounds(queues))
    if before is None:
        return None
    # It may be there and not be readable: that is told like its end, but at once.
    return KnownTopic({}) if route is not None else None


def _is_held(
    topic: str, name: str, brokers: Mapping[str, SeenBroker], gone: Collection[str], *, everywhere: bool
) -> bool:
    """Answer whether a broker's queues are still there, though no route names them.

    Consumers keep the routes that they have while a name server knows none at all.
    """
    broker = brokers.get(name)
    if broker is None:
        return False
    if broker.topics is None:
        return everywhere or name not in gone
    config = broker.topics.get(topic)
    return config is not None and readable(config) > 0


def _within_bounds(queues: Mapping[str, int]) -> dict[str, int]:
    """Answer no more queues than an event may carry; what is beyond them is left out."""
    left = MAX_QUEUE_COUNT
    within = {}
    for name in sorted(queues):
        within[name] = min(queues[name], left)
        left -= within[name]
    return {name: count for name, count in within.items() if count > 0}


def _event(topic: str, after: KnownTopic | None, time_ms: int, cluster: str) -> TopicQueues:
    event = TopicQueues(schema_version=SCHEMA_VERSION, event_time=time_ms, system=_SYSTEM, cluster=cluster, topic=topic)
    if after is None or not after.queues:
        event.queue_count = 0
    else:
        event.queues = tuple(
            QueueInfo(queue_id=number, broker=name)
            for name in sorted(after.queues)
            for number in range(after.queues[name])
        )
    return event
