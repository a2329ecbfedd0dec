"""Shell: where the logs of RocketMQ's queues begin since that was last reported, as events of topics. Pure.

Groups' offsets are read in turn, so a start may be newer than the commits that are known. A start beyond one of them is
reported once the offsets of that group were read again: only then the two show that messages were lost.
"""

from __future__ import annotations

from collections.abc import Iterable

from streaming.collectors.rocketmq.diffing.remembered import HeldStart, VolatileState
from streaming.collectors.rocketmq.polling.survey import Survey
from streaming.collectors.rocketmq.remoting.messages import MessageQueue
from udfs.model.events import QueueEnd, QueueEnds, event_fields


def diff_starts(
    volatile: VolatileState, survey: Survey, floor_ms: int, cluster: str
) -> tuple[list[QueueEnds], VolatileState]:
    """Return the queues whose start moved, with their ends, and the new state.

    Args:
        volatile: It has the groups' offsets of this round. floor_ms: Events are later.
    """
    if not survey.bounds and not volatile.held_starts:
        return [], volatile
    held = {queue: _waiting(queue, start, volatile, survey) for queue, start in volatile.held_starts.items()}
    news = [(survey.ended_ms, queue, start) for queue, start in held.items() if not start.groups]
    held = {queue: start for queue, start in held.items() if start.groups}
    for observed in survey.bounds.values():
        for queue, bounds in observed.bounds.items():
            # A start that is held is not replaced, or those that move often would never be reported.
            if queue in held or volatile.starts.get(queue) == bounds.min_offset or queue.queue_id < 0:
                continue
            start = HeldStart(bounds.min_offset, bounds.max_offset, _behind(queue, bounds.min_offset, volatile))
            if start.groups:
                held[queue] = start
            else:
                news.append((max(floor_ms + 1, observed.at_ms), queue, start))
    starts = {**volatile.starts, **{queue: start.offset for _, queue, start in news}} if news else volatile.starts
    return list(_events(news, cluster)), VolatileState(volatile.groups, starts, held)


def _waiting(queue: MessageQueue, start: HeldStart, volatile: VolatileState, survey: Survey) -> HeldStart:
    """Return a held start without the groups whose offsets were read in this round, or that are gone."""
    groups, end = set(start.groups), start.end_offset
    for name in start.groups:
        observed = survey.groups.get(name)
        if observed is None or name not in volatile.groups:
            groups.discard(name)
        elif observed.offsets is not None and queue.broker_name in observed.offset_brokers:
            groups.discard(name)
            if queue in observed.offsets:
                end = max(end, observed.offsets[queue].broker_offset)
    return HeldStart(start.offset, end, frozenset(groups))


def _behind(queue: MessageQueue, start: int, volatile: VolatileState) -> frozenset[str]:
    """Return the groups whose last known offset is before a start."""
    if start <= 0:
        return frozenset()
    return frozenset(
        name
        for name, group in volatile.groups.items()
        if group.offsets is not None and queue in group.offsets and group.offsets[queue].consumer_offset < start
    )


def _events(news: Iterable[tuple[int, MessageQueue, HeldStart]], cluster: str) -> Iterable[QueueEnds]:
    by_topic: dict[tuple[int, str], list[QueueEnd]] = {}
    for at_ms, queue, start in sorted(news, key=lambda entry: entry[:2]):
        end = QueueEnd(queue.queue_id, start.end_offset, queue.broker_name, start.offset)
        by_topic.setdefault((at_ms, queue.topic), []).append(end)
    for (at_ms, topic), ends in by_topic.items():
        yield QueueEnds(**event_fields("rocketmq", cluster, at_ms), topic=topic, queues=tuple(ends))
