"""Core: a group as a ``group_snapshot`` event, for an export of the state. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from udfs.group.state.group import Group, Member, queue_order
from udfs.model.events import GroupSnapshot, MemberInfo, QueueRef, RevokedQueue
from udfs.model.member_fields import FIELDS
from udfs.model.systems import KAFKA


def snapshot_of(group: Group, last_heartbeat: Mapping[str, int], event_time: int) -> GroupSnapshot:
    """Return a group as a restored snapshot: the readable part of its state.

    Args:
        last_heartbeat: The last heartbeat of each member that is tracked by heartbeats.
    Returns: a snapshot without system, cluster and group; ``assignments`` are the reported ones if there are any, else
        the computed ones.
    """
    last_heartbeat = {**group.last_heartbeats, **last_heartbeat}
    revoked = sorted(group.revoked_pending, key=queue_order)
    return GroupSnapshot(
        schema_version=1,
        event_time=event_time,
        system=KAFKA.name,
        cluster="-",
        group="-",
        generation=group.current_generation,
        generation_source=group.source,
        state=_state(group),
        strategy=group.last_strategy or group.reported_strategy or group.strategy,
        leader=group.leader,
        members=tuple(_info(member, last_heartbeat) for member in group.members.values()),
        assignments=_assignments(group),
        restored=True,
        last_rebalance_id=group.last_rebalance_id,
        revoked=tuple(RevokedQueue(queue[0], queue[2], queue[1], group.revoked_at(queue)) for queue in revoked) or None,
        logical_id=group.logical_id,
    )


def _state(group: Group) -> str:
    if not group.followed:
        return "not_followed"
    return "Stable" if group.members else "Empty"


def _info(member: Member, last_heartbeat: Mapping[str, int]) -> MemberInfo:
    return MemberInfo(
        member_id=member.member_id,
        joined_at=member.joined_at,
        last_heartbeat_at=last_heartbeat.get(member.member_id),
        lives_by="heartbeats" if member.by_heartbeats else "snapshots",
        **{name: getattr(member, name) for name in FIELDS},
    )


def _assignments(group: Group) -> dict[str, tuple[QueueRef, ...]]:
    held: dict[str, list[QueueRef]] = {member_id: [] for member_id in group.members}
    owners = group.reported if group.has_reported else group.computed
    for queue in sorted(owners, key=queue_order):
        topic, broker, queue_id = queue
        if queue_id < 0:  # message mode: no member owns a queue
            continue
        for member_id in owners[queue]:
            if member_id in held:
                held[member_id].append(QueueRef(topic, queue_id, broker))
    return {member_id: tuple(queues) for member_id, queues in held.items()}
