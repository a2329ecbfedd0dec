"""Shell: the positions of a RocketMQ group's members in their queues, by their own reports, as events. Pure.

A member commits every few seconds, and with each pull. Messages that it has consumed since are consumed again by the
member that gets the queue after it was killed. The report of its queues includes the position, so it costs no further
request.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from streaming.collectors.rocketmq.diffing.remembered import VolatileGroup
from streaming.collectors.rocketmq.options import RocketMqOptions
from streaming.collectors.rocketmq.polling.survey import ObservedGroup
from streaming.collectors.rocketmq.remoting.messages import MessageQueue, QueueOffsets, RunningInfo
from udfs.model.events import QueueOffset

_EVERYTHING = frozenset({None, "", "*"})


def compare_positions(
    volatile: VolatileGroup, observed: ObservedGroup, options: RocketMqOptions
) -> tuple[tuple[QueueOffset, ...], VolatileGroup]:
    """Return the events for members that answered: the queues in which a member advanced, or starts over."""
    found = {
        queue: position
        for member in observed.members.values()
        if member.info is not None
        for queue, position in positions_of(member.info, observed.offsets or {}).items()
        if options.follows_topic(queue.topic)
    }
    news = {queue: position for queue, position in found.items() if volatile.positions.get(queue, 0) != position}
    if not news:
        return (), volatile
    reported = tuple(
        QueueOffset(
            topic=queue.topic, queue_id=queue.queue_id, broker=queue.broker_name, moved=False, position=position
        )
        for queue, position in sorted(news.items())
    )
    return reported, msgspec.structs.replace(volatile, positions={**volatile.positions, **news})


def positions_of(info: RunningInfo, offsets: Mapping[MessageQueue, QueueOffsets]) -> dict[MessageQueue, int]:
    """Return a member's position in each of its queues: how many messages it has consumed.

    A member that consumes concurrently may have consumed messages after one that it is still processing: all that it
    has fetched, up to its pull offset (which brokers of 5.x report), except for cached ones. If it reads only some of a
    topic's messages, those that it did not fetch cannot be distinguished from them, and do not count.

    Args:
        offsets: Offsets that brokers report in the same round.

    Example:
        >>> from streaming.collectors.rocketmq.remoting.messages import ProcessQueue
        >>> queue, state = MessageQueue("orders", "broker-a", 0), ProcessQueue(commit_offset=40, cached_msg_count=2)
        >>> info = RunningInfo(properties={}, subscriptions=(), queues={queue: state})
        >>> list(positions_of(info, {}).values())
        [40]
        >>> list(positions_of(info, {queue: QueueOffsets(90, 40, pull_offset=60)}).values())
        [58]
    """
    if info.message_model == "BROADCASTING":
        return {}  # each member has its own offsets
    filtered = {subscription.topic for subscription in info.subscriptions if subscription.sub_string not in _EVERYTHING}
    found = {}
    for queue, state in info.queues.items():
        if state.dropped or queue.queue_id < 0 or state.commit_offset is None or state.commit_offset < 0:
            continue
        at_broker = offsets.get(queue)
        pulls = None if at_broker is None or queue.topic in filtered else at_broker.pull_offset
        behind = pulls - state.cached_msg_count if pulls and state.cached_msg_count else 0
        found[queue] = max(state.commit_offset, behind)
    return found
