"""Shell: the assignments that members of a RocketMQ group report, as events. Pure.

A member's pull times change all the time and are reported only if they matter: when its queues change, and once more
when it has pulled from its new queues. A new queue shows the time of the takeover instead of its last pull
(``ProcessQueue#lastPullTimestamp``).
"""

from __future__ import annotations

from typing import Final

import msgspec

from streaming.collectors.rocketmq.diffing.remembered import RememberedGroup, RememberedMember
from streaming.collectors.rocketmq.options import RocketMqOptions
from streaming.collectors.rocketmq.polling.survey import ObservedGroup
from streaming.collectors.rocketmq.remoting.messages import MessageQueue, ProcessQueue, RunningInfo
from udfs.model.events import AnyEvent, AssignmentReported, HeldQueue, QueueRef, event_fields

# Only times from 2000 to 2100 are valid.
_EARLIEST_MS: Final = 946_684_800_000
_LATEST_MS: Final = 4_102_444_800_000
# The lock of an ordered queue whose owner died lives for 60 s at its broker (RebalanceLockManager); a first pull comes
# at most that long and a member's own tick of 20 s later.
_FIRST_PULL_WITHIN_MS: Final = 90_000


def diff_assignments(
    name: str,
    group: RememberedGroup,
    observed: ObservedGroup,
    at_ms: int,
    options: RocketMqOptions,
    *,
    may_report: bool,
) -> tuple[list[AnyEvent], RememberedGroup]:
    """Report the queues of members whose queues changed.

    If messages are shared and not queues, no member owns one. If several members have one client id, one of them
    answers; its report has no address, because it is unknown which of them it was.

    Args:
        at_ms: When the group was polled; members' reports have this time, or a later one.
        may_report: The group itself has been reported; otherwise the assignments wait.
    """
    events: list[AnyEvent] = []
    members = list(group.members)
    answered: set[str] = set()
    for place, member in enumerate(group.members):
        answer = observed.members.get(member.client_id)
        time_ms = at_ms
        if member.client_id in answered:
            continue
        answered.add(member.client_id)
        if answer is not None and answer.info is not None:
            held = _held(answer.info, options, is_ordered=bool(member.info.ordered))
            time_ms = max(at_ms, answer.at_ms)
        elif member.unreported is not None and may_report:
            held = member.unreported
        else:
            continue
        if group.mode == "message":
            if member.held is None:
                continue
            held = ()
        after = _reported(member, held, time_ms)
        if after is None:
            continue
        if not may_report:
            members[place] = msgspec.structs.replace(member, unreported=held)
            continue
        members[place] = after
        is_one = sum(other.client_id == member.client_id for other in group.members) == 1
        host = member.info.host if is_one else None
        events.append(_report(name, after, held, time_ms, host, options.cluster))
    if members == list(group.members):
        return events, group
    return events, msgspec.structs.replace(group, members=tuple(members))


def _report(
    group: str, member: RememberedMember, held: tuple[HeldQueue, ...], time_ms: int, host: str | None, cluster: str
) -> AssignmentReported:
    return AssignmentReported(
        **event_fields("rocketmq", cluster, time_ms),
        group=group,
        member_id=member.client_id,
        queues=held,
        host=host,
    )


def _reported(member: RememberedMember, held: tuple[HeldQueue, ...], time_ms: int) -> RememberedMember | None:
    """Return a member with its queues if they changed, else None."""
    if member.held is None or _names(member.held) != _names(held):
        before = {_ref(queue) for queue in member.held or ()}
        is_rebalanced = member.held is not None or member.is_newcomer
        return msgspec.structs.replace(
            member,
            held=held,
            unreported=None,
            awaited=tuple(_ref(queue) for queue in held if _ref(queue) not in before) if is_rebalanced else (),
            awaited_until_ms=time_ms + _FIRST_PULL_WITHIN_MS if is_rebalanced else 0,
        )
    if not member.awaited or time_ms >= member.awaited_until_ms:
        return None
    was = {_ref(queue): queue.last_pull_at for queue in member.held}
    pulled = {
        _ref(queue) for queue in held if queue.last_pull_at is not None and queue.last_pull_at != was[_ref(queue)]
    }
    awaited = tuple(queue for queue in member.awaited if queue not in pulled)
    if len(awaited) == len(member.awaited):
        return None
    return msgspec.structs.replace(member, held=held, awaited=awaited)


def _held(info: RunningInfo, options: RocketMqOptions, *, is_ordered: bool) -> tuple[HeldQueue, ...]:
    found = (
        _queue(queue, state, is_ordered=is_ordered)
        for queue, state in info.queues.items()
        if not state.dropped and queue.queue_id >= 0 and options.follows_topic(queue.topic)
    )
    return tuple(sorted(found, key=lambda queue: (queue.topic, queue.broker or "", queue.queue_id)))


def _queue(queue: MessageQueue, state: ProcessQueue, *, is_ordered: bool) -> HeldQueue:
    return HeldQueue(
        topic=queue.topic,
        queue_id=queue.queue_id,
        broker=queue.broker_name,
        locked=state.locked if is_ordered else None,  # it is also true for members that do not consume in order
        last_pull_at=_time(state.last_pull_timestamp),
        last_consume_at=_time(state.last_consume_timestamp),
    )


def _time(time_ms: int | None) -> int | None:
    return time_ms if time_ms is not None and _EARLIEST_MS <= time_ms < _LATEST_MS else None


def _names(queues: tuple[HeldQueue, ...]) -> list[tuple[QueueRef, bool | None]]:
    return [(_ref(queue), queue.locked) for queue in queues]


def _ref(queue: HeldQueue) -> QueueRef:
    return QueueRef(topic=queue.topic, queue_id=queue.queue_id, broker=queue.broker)
