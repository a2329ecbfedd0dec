"""Core: how a group becomes bytes and comes back. No I/O.

MessagePack of nested arrays behind a version number. Texts and lists that a group's members share are written
once and named by their number; owners of queues are run-length coded; what has its default value is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from udfs.errors import StateVersionError
from udfs.group_state import (
    Departed,
    Evidence,
    Group,
    Member,
    OpenFinding,
    Owners,
    Pending,
    Queue,
    Standstill,
    WaitingReport,
    queue_order,
)
from udfs.journal import GroupChanged

GROUP_VERSION: Final = 1

# version -> what turns the plain values of that version into those of the next
UPGRADES: dict[int, Callable[[Any], Any]] = {}

_REASONS = ("left", "expired", "gone", "absent_from_snapshot")
# Fields written as they are, each with its type; the order is the order of the bytes: only ever add at the end.
_PLAIN: tuple[tuple[str, Any], ...] = (
    ("number", int),
    ("counted", int),
    ("generation", int | None),
    ("exists", bool),
    ("followed", bool),
    ("mode", str | None),
    ("strategy", str | None),
    ("strategy_settings", dict[str, object] | None),
    ("reported_strategy", str | None),
    ("dealt_strategy", str | None),
    ("leader", str | None),
    ("members_decided", int),
    ("has_reported", bool),
    ("reporters", list[str]),
    ("guessed_topics", list[str]),
    ("handed_over", list[tuple[str, str | None, int]]),
    ("preparing_since", int | None),
    ("last_rebalance_at", int | None),
    ("last_rebalance_id", str | None),
    ("rebalance_ordinals", dict[str, int]),
    ("last_applied", int | None),
    ("last_snapshot_at", int | None),
    ("touched_at", int | None),
    ("evidence", list[Evidence]),
    ("waiting_reports", list[WaitingReport]),
    ("pending", Pending | None),
    ("findings", dict[str, OpenFinding]),
    ("late_events", int),
    ("recent", list[int]),
    ("row", GroupChanged | None),
    ("reported_at", int | None),
    ("strategy_inferred", bool),
    ("recomputable", bool),
    ("compare_at", int | None),
)
_BLANK = Group()


class _Texts:
    """A table of values that occur more than once, each named by its number."""

    def __init__(self, values: list[Any] | None = None) -> None:
        self.values: list[Any] = values or []
        self._numbers: dict[Any, int] = {}

    def number(self, key: Any, value: Any) -> int:
        """Answer the number under which a value is written."""
        if key not in self._numbers:
            self._numbers[key] = len(self.values)
            self.values.append(value)
        return self._numbers[key]


def encode_group(group: Group) -> bytes:
    """Encode a group for the state."""
    table = _Texts()
    members = list(group.members.values())
    base = group.last_applied or (members[0].joined_at if members else 0)
    # Who went within a settling time still holds, until its rebalance.
    holding = {one for owners in (group.computed, group.reported) for held in owners.values() for one in held}
    others = sorted(holding - group.members.keys())
    body: list[Any] = [
        base,
        [_pack_member(member, table, base) for member in members],
        [
            [
                _pack_member(gone.member, table, base),
                base - gone.left_at,
                _REASONS.index(gone.left_reason),
                None if gone.last_heartbeat_at is None else base - gone.last_heartbeat_at,
            ]
            for gone in group.departed.values()
        ],
        others,
        _pack_owners(group.computed, [*group.members, *others], table),
        # Mostly clients hold what they should: then it is not written twice.
        True
        if group.reported and group.reported == group.computed
        else _pack_owners(group.reported, [*group.members, *others], table),
        [[table.number(topic, topic), count] for topic, count in group.counts.items()],
        {
            place: getattr(group, name)
            for place, (name, _) in enumerate(_PLAIN)
            if name != "row" and getattr(group, name) != getattr(_BLANK, name)
        },
        _pack_row(group),
    ]
    if group.pulls or group.standing:
        body += [_pack_times(group.pulls, table, base), _pack_standing(group.standing, table, base)]
    return msgspec.msgpack.encode([GROUP_VERSION, table.values, body])


def decode_group(data: bytes) -> Group:
    """Decode what ``encode_group`` made, of this version or an older one.

    Raises:
        StateVersionError: Written by a newer version, or damaged.
    """
    try:
        plain = msgspec.msgpack.decode(data)
        version, values, body = plain
        if not isinstance(version, int) or version > GROUP_VERSION:
            raise StateVersionError(
                f"a group was written in encoding {version}, this version of the monitor reads up to {GROUP_VERSION}: "
                "run the version that wrote it, or a newer one"
            )
        while version < GROUP_VERSION:
            values, body = UPGRADES[version]((values, body))
            version += 1
        return _unpack(values, body)
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError, TypeError, IndexError, KeyError) as error:
        raise StateVersionError(f"a group's state cannot be read: it is damaged ({error})") from error


def _unpack(values: list[Any], body: list[Any]) -> Group:
    base, members, departed, others, computed, reported, counts, plain, row, *taken_over = body
    group = Group()
    for member in members:
        unpacked = _unpack_member(member, values, base)
        group.members[unpacked.member_id] = unpacked
    for packed, ago, reason, seen_ago in departed:
        unpacked = _unpack_member(packed, values, base)
        group.departed[unpacked.member_id] = Departed(
            member=unpacked,
            left_at=base - ago,
            left_reason=_REASONS[reason],  # type: ignore[arg-type]
            last_heartbeat_at=None if seen_ago is None else base - seen_ago,
        )
    names = [*group.members, *others]
    group.computed = _unpack_owners(computed, names, values)
    group.reported = dict(group.computed) if reported is True else _unpack_owners(reported, names, values)
    group.counts = {values[topic]: count for topic, count in counts}
    for place, value in plain.items():
        name, kind = _PLAIN[place]
        setattr(group, name, msgspec.convert(value, kind))
    _unpack_row(group, row)
    if taken_over:
        pulls, standing = taken_over
        group.pulls = {queue: base - ago for queue, ago in _unpack_by_queue(pulls, values)}
        group.standing = {
            queue: Standstill(estimate, None if ago is None else base - ago, taker)
            for queue, (estimate, ago, taker) in _unpack_by_queue(standing, values)
        }
    return group


# ---- members


def _pack_member(member: Member, table: _Texts, base: int) -> list[Any]:
    lists = (member.subscriptions, member.strategies)
    settings = member.strategy_settings
    key = ("settings", msgspec.json.encode(settings, order="deterministic")) if settings else None
    spans = (member.session_timeout_ms, member.rebalance_timeout_ms)
    client = [member.client_version, member.language, member.ordered]
    while client and client[-1] is None:
        client.pop()
    packed: list[Any] = [
        member.member_id,
        base - member.joined_at,
        int(member.by_heartbeats),
        # Members of one group mostly say the same of themselves: then one number stands for all of it.
        table.number(
            ("kind", lists, *spans, member.client_library, key, *client),
            [*lists, *spans, member.client_library, settings, *client],
        ),
        None if member.client_id is None else _shortened(member.client_id, member.member_id),
        member.host,
        None if member.holds_since == member.joined_at else _ago(member.holds_since, base),
        member.instance_id,
        member.rack,
        None if member.name == member.member_id else member.name,
        member.owned,
        member.owned_generation,
    ]
    while packed and packed[-1] is None:
        packed.pop()
    return packed


def _ago(at: int | None, base: int) -> int | None:
    return None if at is None else base - at


def _shortened(text: str, whole: str) -> str | int:
    """Answer a beginning of another text as its length."""
    return len(text) if whole.startswith(text) else text


def _unpack_member(packed: list[Any], values: list[Any], base: int) -> Member:
    packed = packed + [None] * (12 - len(packed))
    (
        member_id,
        ago,
        by_heartbeats,
        kind,
        client_id,
        host,
        since_ago,
        instance_id,
        rack,
        name,
        owned,
        owned_generation,
    ) = packed
    subscriptions, strategies, session_timeout_ms, rebalance_timeout_ms, client_library, settings, *client = values[
        kind
    ]
    client_version, language, ordered = client + [None] * (3 - len(client))
    return msgspec.convert(
        {
            "member_id": member_id,
            "name": member_id if name is None else name,
            "joined_at": base - ago,
            "by_heartbeats": bool(by_heartbeats),
            "client_id": member_id[:client_id] if isinstance(client_id, int) else client_id,
            "host": host,
            "instance_id": instance_id,
            "rack": rack,
            "client_library": client_library,
            "client_version": client_version,
            "language": language,
            "ordered": ordered,
            "subscriptions": subscriptions,
            "strategies": strategies,
            "strategy_settings": settings,
            "session_timeout_ms": session_timeout_ms,
            "rebalance_timeout_ms": rebalance_timeout_ms,
            "owned": owned,
            "owned_generation": owned_generation,
            "holds_since": base - ago if since_ago is None else base - since_ago,
        },
        Member,
    )


# ---- owners: for each topic and broker, runs of (gap before, length, owners)


def _pack_owners(owners: Owners, names: list[str], table: _Texts) -> list[Any]:
    if not owners:
        return []
    numbers = {member_id: number for number, member_id in enumerate(names)}
    packed: list[Any] = []
    place: tuple[str, str | None] | None = None
    runs: list[Any] = []
    next_id, holder = 0, None
    for queue in sorted(owners, key=queue_order):
        topic, broker, queue_id = queue
        holders = owners[queue]
        now = numbers[holders[0]] if len(holders) == 1 else [numbers[one] for one in holders]
        if (topic, broker) != place:
            place, runs, next_id, holder = (topic, broker), [], 0, None
            packed.append([table.number(topic, topic), None if broker is None else table.number(broker, broker), runs])
        if now == holder and queue_id == next_id:
            runs[-2] += 1
        else:
            runs += [queue_id - next_id, 1, now]
        next_id, holder = queue_id + 1, now
    return packed


def _unpack_owners(packed: list[Any], names: list[str], values: list[Any]) -> Owners:
    owners: Owners = {}
    for topic, broker, runs in packed:
        name, place, next_id = values[topic], None if broker is None else values[broker], 0
        for start in range(0, len(runs), 3):
            gap, length, holder = runs[start : start + 3]
            held = (names[holder],) if isinstance(holder, int) else tuple(names[one] for one in holder)
            next_id += gap
            for queue_id in range(next_id, next_id + length):
                owners[(name, place, queue_id)] = held
            next_id += length
    return owners


# ---- queues with something of their own: for each topic and broker, queue ids and what is said of them in turn


def _pack_times(times: dict[Queue, int], table: _Texts, base: int) -> list[Any]:
    return _pack_by_queue({queue: base - at for queue, at in times.items()}, table)


def _pack_standing(standing: dict[Queue, Standstill], table: _Texts, base: int) -> list[Any]:
    return _pack_by_queue(
        {queue: [one.estimate, _ago(one.released_at, base), one.taker] for queue, one in standing.items()}, table
    )


def _pack_by_queue(said: dict[Queue, Any], table: _Texts) -> list[Any]:
    packed: list[Any] = []
    place: tuple[str, str | None] | None = None
    for queue in sorted(said, key=queue_order):
        topic, broker, queue_id = queue
        if (topic, broker) != place:
            place = (topic, broker)
            packed.append([table.number(topic, topic), None if broker is None else table.number(broker, broker), []])
        packed[-1][2] += [queue_id, said[queue]]
    return packed


def _unpack_by_queue(packed: list[Any], values: list[Any]) -> Iterator[tuple[Queue, Any]]:
    for topic, broker, run in packed:
        place = None if broker is None else values[broker]
        for start in range(0, len(run), 2):
            yield (values[topic], place, run[start]), run[start + 1]


# ---- the group's row: mostly what the rest says already


def _pack_row(group: Group) -> list[Any] | None:
    row = group.row
    if row is None:
        return None
    return [
        row.system,
        row.state,
        None if row.mode == (group.mode or "clustering") else [row.mode],
        None if row.strategy == group.dealt_strategy else [row.strategy],
        None if row.generation == group.current_generation else [row.generation],
        None if row.generation_source == group.source else [row.generation_source],
        row.members,
        row.queues,
        row.idle_members,
        row.unassigned_queues,
        row.spread,
        None if row.last_rebalance_at == group.last_rebalance_at else [row.last_rebalance_at],
        None if row.last_rebalance_id == group.last_rebalance_id else [row.last_rebalance_id],
    ]


def _unpack_row(group: Group, packed: list[Any] | None) -> None:
    if packed is None:
        return
    system, state, mode, strategy, generation, source, members, queues, idle, unassigned, spread, at, name = packed
    group.row = GroupChanged(
        system=system,
        state=state,
        mode=mode[0] if mode else group.mode or "clustering",
        strategy=strategy[0] if strategy else group.dealt_strategy,
        generation=generation[0] if generation else group.current_generation,
        generation_source=source[0] if source else group.source,
        members=members,
        queues=queues,
        idle_members=idle,
        unassigned_queues=unassigned,
        spread=spread,
        last_rebalance_at=at[0] if at else group.last_rebalance_at,
        last_rebalance_id=name[0] if name else group.last_rebalance_id,
    )
