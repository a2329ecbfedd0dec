"""Shell: converts the reported and the observed state of a topic into events. No I/O here."""

from __future__ import annotations

import msgspec

from streaming.collectors.metaq.observed import ZkTopic
from streaming.collectors.metaq.read_context import ReadContext
from streaming.collectors.metaq.reported_state import ReportedTopicState
from udfs.model.events import QueueInfo, TopicQueues, event_fields


def diff_topic(
    topic: str, before: ReportedTopicState | None, observed: ZkTopic, context: ReadContext
) -> tuple[list[TopicQueues], ReportedTopicState]:
    """Report the changes of a topic.

    Removed queues are reported only after ``settle_ms``, with the time at which the removal was noticed: a broker that
    reloads its settings removes its topics and adds them again at once.
    """
    queues = observed.queues()
    if before is None:
        if not queues:
            return [], ReportedTopicState(observed=observed)
        return [_event(topic, queues, context, context.at)], ReportedTopicState(
            observed=observed, queues=queues, at=context.at
        )
    reported = before.queues or ()
    if queues == reported:
        return [], msgspec.structs.replace(before, observed=observed, doubted_since=None)
    shrunk = not set(reported) <= set(queues)
    since = before.doubted_since or context.noticed
    if shrunk and context.at - since < context.settle_ms:
        return [], msgspec.structs.replace(before, observed=observed, doubted_since=since)
    changed = [
        share.since
        for name, share in observed.shares.items()
        if before.observed.shares.get(name) != share or share.since > before.at
    ]
    times = [time for time in changed if time <= context.at] + ([since] if shrunk else [])
    at = max(max(times, default=context.at), before.at + 1)
    return [_event(topic, queues, context, at)], ReportedTopicState(observed=observed, queues=queues, at=at)


def _event(topic: str, queues: tuple[tuple[str, int], ...], context: ReadContext, event_time: int) -> TopicQueues:
    event = TopicQueues(**event_fields("metaq", context.cluster, event_time), topic=topic)
    if queues:
        event.queues = tuple(QueueInfo(queue_id=number, broker=broker) for broker, number in queues)
    else:
        event.queue_count = 0
    return event
