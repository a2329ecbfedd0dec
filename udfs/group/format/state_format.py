"""Core: a group's state encoded as bytes. No I/O.

MessagePack of nested arrays after a version number. Texts and lists that a group's members share are written
once and referred to by number; owners of queues are run-length coded; default values are omitted.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from operator import attrgetter
from typing import Any, Final, get_type_hints

import msgspec

from udfs.group.format.member_format import Kinds, KindsRead, pack_member, time_before, unpack_members
from udfs.group.format.owners_format import SharedValues, pack_by_queue, pack_owners, unpack_by_queue, unpack_owners
from udfs.group.state.group import (
    Awaited,
    Departed,
    Group,
    IdleQueue,
    Owners,
    Queue,
    observed_by,
)
from udfs.group.state.strategy_verdict import with_verdict
from udfs.model.errors import StateDamagedError, StateVersionError
from udfs.model.events import QueueInfo
from udfs.model.garbage_collection import makes_no_cycles
from udfs.model.journal import GroupChanged, MemberEpoch, MemberReplaced, ReconcilingMember
from udfs.model.spans import QueuesReassigned

# 2: standstills, unread queues, losses to retention, commits that went back or expired, episodes; votes of an epoch's
# members.
GROUP_VERSION: Final = 2

_REASONS = ("left", "expired", "gone", "absent_from_snapshot", "replaced")
# Fields written unchanged. Their order is the byte order, so only append.
_PLAIN: Final = (
    *("number", "counted", "generation", "exists", "followed", "mode", "strategy", "strategy_settings"),
    *("reported_strategy", "last_strategy", "leader", "members_decided", "has_reported", "reporters"),
    *("topics_without_metadata", "revoked_pending", "preparing_since", "last_rebalance_at", "last_rebalance_id"),
    *("rebalance_ordinals", "last_applied", "last_snapshot_at", "touched_at", "evidence", "waiting_reports", "pending"),
    *("findings", "late_events", "recent", "row", "reported_at", "strategy_inferred", "recomputable", "compare_at"),
    *("replaced", "settings_at", "last_heartbeats", "assigned_at", "usual", "polled", "logical_id", "preparing_reason"),
    *("join_ended_at", "recorded", "audit", "verdict", "last_library", "waiting_since", "converging", "deleted_at"),
    *("computed_at", "under_way_since", "returned_after", "recent_clients", "standstill", "unread", "retention"),
    *("went_back", "expired", "roots", "episodes"),
)
_TYPES: Final = get_type_hints(Group)
_VALUES = attrgetter(*_PLAIN)
_BLANK = _VALUES(Group())
_ROW = _PLAIN.index("row")


@makes_no_cycles
def encode_group(group: Group) -> bytes:
    """Encode a group."""
    table = SharedValues()
    kinds = Kinds(table)
    members = list(group.members.values())
    base = group.last_applied or (members[0].joined_at if members else 0)
    # A member that departed within the settling time still owns its queues until the rebalance.
    awaited = group.awaited
    kept = (group.computed, group.reported, *((awaited.before, awaited.previous) if awaited else ()))
    holding = set(chain.from_iterable(chain.from_iterable((owners or {}).values() for owners in kept)))
    others = sorted(holding - group.members.keys())
    body: list[Any] = [
        base,
        [pack_member(member, kinds, base) for member in members],
        [
            [
                pack_member(departed.member, kinds, base),
                base - departed.left_at,
                _REASONS.index(departed.left_reason),
                time_before(departed.last_heartbeat_at, base),
                time_before(departed.own_at, base),
            ]
            for departed in group.departed.values()
        ],
        others,
        pack_owners(group.computed, [*group.members, *others], table),
        # Reported and computed owners are mostly equal; equal owners are written once.
        True
        if group.reported and group.reported == group.computed
        else pack_owners(group.reported, [*group.members, *others], table),
        [[table.number(topic, topic), count] for topic, count in group.counts.items()],
        {
            place: value
            for place, (value, blank) in enumerate(zip(_VALUES(group), _BLANK, strict=True))
            if value != blank and place != _ROW
        },
        _pack_row(group),
    ]
    if group.pulls or group.idle_queues or awaited is not None:
        body += [_pack_times(group.pulls, table, base), _pack_idle_queues(group.idle_queues, table, base)]
    if awaited is not None:
        body.append(_pack_awaited(group, awaited, [*group.members, *others], table, base))
    return msgspec.msgpack.encode([GROUP_VERSION, table.values, body])


@makes_no_cycles
def decode_group(data: bytes) -> Group:
    """Decode what ``encode_group`` wrote.

    Raises:
        StateVersionError: The data was written by a newer version, or is damaged.
    """
    try:
        plain = msgspec.msgpack.decode(data)
        version, values, body = plain
        if not isinstance(version, int) or version > GROUP_VERSION:
            raise StateVersionError(
                f"a group was written in encoding {version}, this version of the monitor reads up to {GROUP_VERSION}: "
                "run the version that wrote it, or a newer one"
            )
        return _unpack(values, body)
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError, TypeError, IndexError, KeyError) as error:
        raise StateDamagedError(f"a group's state cannot be read: it is damaged ({error})") from error


def _unpack(values: list[Any], body: list[Any]) -> Group:
    base, members, departed, others, computed, reported, counts, plain, row, *taken_over = body
    kinds = KindsRead(values)
    present = {member.member_id: member for member in unpack_members(members, kinds, base)}
    departed_members = unpack_members([packed for packed, *_ in departed], kinds, base)
    names, owners = [*present, *others], unpack_owners(computed, [*present, *others], values)
    group = Group(
        members=present,
        departed={
            member.member_id: Departed(
                member=member,
                left_at=base - ago,
                left_reason=_REASONS[reason],  # type: ignore[arg-type]
                last_heartbeat_at=None if heartbeat_ago is None else base - heartbeat_ago,
                own_at=None if own_ago is None else base - own_ago,
            )
            for member, (_, ago, reason, heartbeat_ago, own_ago) in zip(departed_members, departed, strict=True)
        },
        computed=owners,
        reported=dict(owners) if reported is True else unpack_owners(reported, names, values),
        counts={values[topic]: count for topic, count in counts},
        **{_PLAIN[place]: msgspec.convert(value, _TYPES[_PLAIN[place]]) for place, value in plain.items()},
    )
    pulls, idle_queues, *awaited = taken_over or ([], [])
    return msgspec.structs.replace(
        group,
        row=_unpack_row(group, row),
        pulls={queue: base - ago for queue, ago in unpack_by_queue(pulls, values)},
        idle_queues={
            queue: IdleQueue(estimate, None if ago is None else base - ago, taker, *(base - age for age in read_ago))
            for queue, (estimate, ago, taker, *read_ago) in unpack_by_queue(idle_queues, values)
        },
        awaited=_unpack_awaited(group, awaited[0], names, values, base) if awaited else None,
    )


# ---- a generation that is not computed yet


def _pack_awaited(group: Group, awaited: Awaited, names: list[str], table: SharedValues, base: int) -> list[Any]:
    def packed(owners: Owners | None) -> Any:
        if owners is None:
            return None
        return True if owners == group.computed else pack_owners(owners, names, table)

    return [
        base - awaited.since,
        [[table.number(topic, topic), queues] for topic, queues in awaited.topic_queues.items()],
        awaited.guessed,
        packed(awaited.before),
        packed(awaited.previous),
        awaited.again,
        awaited.assumes_queues,
    ]


def _unpack_awaited(group: Group, packed: list[Any], names: list[str], values: list[Any], base: int) -> Awaited:
    ago, topic_queues, guessed, before, previous, again, assumes_queues = packed

    def unpacked(owners: Any) -> Owners | None:
        if owners is None:
            return None
        return dict(group.computed) if owners is True else unpack_owners(owners, names, values)

    return Awaited(
        since=base - ago,
        topic_queues={
            values[topic]: msgspec.convert(queues, int | tuple[QueueInfo, ...]) for topic, queues in topic_queues
        },
        guessed=guessed,
        assumes_queues=assumes_queues,
        before=unpacked(before) or {},
        previous=unpacked(previous),
        again=msgspec.convert(again, list[QueuesReassigned | MemberReplaced] | None),
    )


# ---- values per queue: for each topic and broker, queue ids and values alternate


def _pack_times(times: Mapping[Queue, int], table: SharedValues, base: int) -> list[Any]:
    return pack_by_queue({queue: base - at for queue, at in times.items()}, table)


def _pack_idle_queues(idle_queues: Mapping[Queue, IdleQueue], table: SharedValues, base: int) -> list[Any]:
    packed: dict[Queue, Any] = {}
    for queue, idle_queue in idle_queues.items():
        packed[queue] = [idle_queue.estimate, time_before(idle_queue.released_at, base), idle_queue.taker]
        if idle_queue.read_at is not None:
            packed[queue].append(base - idle_queue.read_at)
    return pack_by_queue(packed, table)


# ---- the group's row, which mostly equals other fields


def _pack_row(group: Group) -> list[Any] | None:
    row = group.row
    if row is None:
        return None
    return [
        row.system,
        row.state,
        None if row.mode == (group.mode or "clustering") else [row.mode],
        None if row.strategy == group.last_strategy else [row.strategy],
        None if row.generation == group.current_generation else [row.generation],
        None if row.generation_source == group.source else [row.generation_source],
        row.members,
        row.queues,
        row.idle_members,
        row.unassigned_queues,
        row.spread,
        None if row.last_rebalance_at == group.last_rebalance_at else [row.last_rebalance_at],
        None if row.last_rebalance_id == group.last_rebalance_id else [row.last_rebalance_id],
        *(_pack_epochs(group, row) if row.protocol is not None else ()),
    ]


def _pack_epochs(group: Group, row: GroupChanged) -> list[Any]:
    derived = _derived(group)
    written = (row.member_epochs, row.reconciling)
    return [
        *(row.protocol, row.epoch, row.assignment_epoch, row.waits),
        *(None if value == other else [value] for value, other in zip(written, derived, strict=True)),
    ]


def _derived(group: Group) -> tuple[list[MemberEpoch] | None, list[ReconcilingMember] | None]:
    """Return the records' current view of members, which mostly equals the row."""
    recorded = group.recorded
    return (None, None) if recorded is None else (recorded.member_epochs(group.members), recorded.reconciling())


def _unpack_row(group: Group, packed: list[Any] | None) -> GroupChanged | None:
    if packed is None:
        return None
    system, state, mode, strategy, generation, source, members, queues, idle, unassigned, spread, at, name, *epochs = (
        packed
    )
    protocol, epoch, assignment_epoch, waits, *written = epochs or (None, None, None, None, [None], [None])
    others, reconciling = written if len(written) > 1 else (*written, [None])
    derived = _derived(group) if epochs else (None, None)
    counted_by = source[0] if source else group.source
    row = GroupChanged(
        system=system,
        state=state,
        mode=mode[0] if mode else group.mode or "clustering",
        strategy=strategy[0] if strategy else group.last_strategy,
        generation=generation[0] if generation else group.current_generation,
        generation_source=counted_by,
        members=members,
        queues=queues,
        idle_members=idle,
        unassigned_queues=unassigned,
        spread=spread,
        last_rebalance_at=at[0] if at else group.last_rebalance_at,
        last_rebalance_id=name[0] if name else group.last_rebalance_id,
        observed_by=observed_by(group, counted_by),
        protocol=protocol,
        epoch=epoch,
        assignment_epoch=assignment_epoch,
        waits=waits,
        member_epochs=msgspec.convert(others[0], list[MemberEpoch] | None) if others else derived[0],
        reconciling=msgspec.convert(reconciling[0], list[ReconcilingMember] | None) if reconciling else derived[1],
    )
    return with_verdict(row, group)
