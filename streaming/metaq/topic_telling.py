"""Shell: a topic as it was told and as it is seen -> events. No I/O here."""

from __future__ import annotations

import msgspec

from streaming.metaq.look import Look
from streaming.metaq.seen import SeenTopic
from streaming.metaq.told import ToldTopic
from udfs.events import SCHEMA_VERSION, QueueInfo, TopicQueues


def tell_topic(
    topic: str, before: ToldTopic | None, seen: SeenTopic, look: Look
) -> tuple[list[TopicQueues], ToldTopic]:
    """Tell what is new of a topic.

    Queues that are gone are told only once they have been for ``settle_ms``, with the time at which that was noticed:
    a broker that takes up new settings takes its topics out and puts them in again at once.
    """
    queues = seen.queues()
    if before is None:
        if not queues:
            return [], ToldTopic(seen=seen)
        return [_event(topic, queues, look, look.at)], ToldTopic(seen=seen, queues=queues, at=look.at)
    told = before.queues or ()
    if queues == told:
        return [], msgspec.structs.replace(before, seen=seen, doubted_since=None)
    gone = not set(told) <= set(queues)
    since = before.doubted_since or look.noticed
    if gone and look.at - since < look.settle_ms:
        return [], msgspec.structs.replace(before, seen=seen, doubted_since=since)
    changed = [
        share.since
        for name, share in seen.shares.items()
        if before.seen.shares.get(name) != share or share.since > before.at
    ]
    times = [time for time in changed if time <= look.at] + ([since] if gone else [])
    at = max(max(times, default=look.at), before.at + 1)
    return [_event(topic, queues, look, at)], ToldTopic(seen=seen, queues=queues, at=at)


def _event(topic: str, queues: tuple[tuple[str, int], ...], look: Look, at: int) -> TopicQueues:
    event = TopicQueues(schema_version=SCHEMA_VERSION, event_time=at, system="metaq", cluster=look.cluster, topic=topic)
    if queues:
        event.queues = tuple(QueueInfo(queue_id=number, broker=broker) for broker, number in queues)
    else:
        event.queue_count = 0
    return event
