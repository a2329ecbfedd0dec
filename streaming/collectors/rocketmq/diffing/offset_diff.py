"""Shell: how far a RocketMQ group has read its queues since the last read, as events. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from streaming.collectors.rocketmq.diffing.anomalies import alone
from streaming.collectors.rocketmq.diffing.remembered import VolatileGroup
from streaming.collectors.rocketmq.options import RocketMqOptions
from streaming.collectors.rocketmq.polling.survey import ObservedGroup
from streaming.collectors.rocketmq.remoting.messages import MessageQueue, QueueOffsets
from udfs.model.events import Progress, QueueOffset, event_fields


def compare_offsets(
    volatile: VolatileGroup, observed: ObservedGroup, options: RocketMqOptions, *, is_alone: bool
) -> tuple[tuple[QueueOffset, ...], VolatileGroup]:
    """Return the queues to report for their offsets since the last read, and count moves without members."""
    reported = _reported_offsets(volatile, observed.offsets, options) if observed.offsets is not None else ()
    has_moved = (
        None if observed.offsets is None or volatile.offsets is None else any(progress.moved for progress in reported)
    )
    moves, still = alone(volatile, is_alone=is_alone, moved=has_moved)
    # A group that just lost its last member counts from the next read on.
    was_alone = is_alone and (volatile.was_alone or observed.offsets is not None)
    changed: dict[str, object] = {}
    if observed.offsets is not None:
        others = (volatile.offsets or {}).items()
        kept = {queue: offset for queue, offset in others if queue.broker_name not in observed.offset_brokers}
        changed["offsets"] = kept | dict(observed.offsets)
        changed["offset_brokers"] = volatile.offset_brokers | observed.offset_brokers
    if (moves, still, was_alone) != (volatile.moves_alone, volatile.still_alone, volatile.was_alone):
        changed |= {"moves_alone": moves, "still_alone": still, "was_alone": was_alone}
    return reported, msgspec.structs.replace(volatile, **changed) if changed else volatile


def progress(name: str, queues: tuple[QueueOffset, ...], at_ms: int, cluster: str) -> Progress:
    """Return the event about queues of a group."""
    return Progress(**event_fields("rocketmq", cluster, at_ms), group=name, queues=queues)


def _reported_offsets(
    volatile: VolatileGroup, offsets: Mapping[MessageQueue, QueueOffsets], options: RocketMqOptions
) -> tuple[QueueOffset, ...]:
    """Return the queues with a commit since the last read, those with a changed lag, and those read for the first time.

    For a queue without any commit brokers return 0; it is not reported unless messages wait.
    """
    before = volatile.offsets or {}
    news = []
    for queue, now in offsets.items():
        was = before.get(queue)
        moved = _has_moved(volatile, queue, was, now)
        is_news = moved or (now.consumer_offset > 0 or now.lag > 0 if was is None else now.lag != was.lag)
        if is_news and now.consumer_offset >= 0 and queue.queue_id >= 0 and options.follows_topic(queue.topic):
            news.append((queue, now, moved))
    return tuple(
        QueueOffset(
            topic=queue.topic,
            queue_id=queue.queue_id,
            broker=queue.broker_name,
            offset=now.consumer_offset,
            end_offset=max(now.broker_offset, 0),
            moved=moved,
            # The message read last: the next one was stored no earlier.
            written_offset=now.consumer_offset - 1 if _is_dated(now) else None,
            written_at=now.last_timestamp if _is_dated(now) else None,
        )
        for queue, now, moved in sorted(news)
    )


def _is_dated(now: QueueOffsets) -> bool:
    return now.consumer_offset > 0 and now.last_timestamp > 0


def _has_moved(volatile: VolatileGroup, queue: MessageQueue, was: QueueOffsets | None, now: QueueOffsets) -> bool:
    """Return whether a queue has a commit since the last read.

    For a topic without any commit brokers return none of its queues, and for a queue without a commit 0
    (``AdminBrokerProcessor#getConsumeStats``). The first read of a broker shows its queues' earlier offsets.
    """
    if was is None:
        return queue.broker_name in volatile.offset_brokers and now.consumer_offset > 0
    return was.consumer_offset != now.consumer_offset
