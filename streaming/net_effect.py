"""Shell: what an ordered piece of the journal does to the rows of one table. No I/O.

The journal is cut anywhere; the effect of the pieces, one after another, is the effect of the whole. So a piece is
laid over the rows as they stand: a span opened and closed within one moment leaves nothing, a session that ended by
mistake goes on, and what ends up as it was is not written at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from streaming import tables
from streaming.tables import Row, Table
from udfs import journal

MINUTE_MS = 60_000
Group: TypeAlias = tuple[str, str | None]


class Entry(NamedTuple):
    """One change, decoded; the body is None where the effect does not read it."""

    cluster: str
    group_id: str | None
    event_time: int
    body: journal.Body | None


class Question(NamedTuple):
    """Which standing rows a piece of the journal may touch: a filter, and bounds that spare files.

    Attributes:
        some_null: A column that is null in each of these rows, so that files without nulls are spared.
    """

    wanted: pc.Expression
    bounds: Mapping[str, tuple[Any, Any]]
    some_null: str | None = None


class Slot:
    """One row while a piece of the journal is laid over it."""

    __slots__ = ("before", "index", "now")

    def __init__(self, now: Row | None, before: Row | None = None, index: int | None = None) -> None:
        self.now = now
        self.before = before
        self.index = index


class Rows:
    """The standing rows that may change, and those that come into being."""

    def __init__(self, standing: Iterable[Row]) -> None:
        self.slots = [Slot(dict(row), row, index) for index, row in enumerate(standing)]

    def add(self, row: Row) -> Slot:
        """Take up a row that was not there."""
        slot = Slot(row)
        self.slots.append(slot)
        return slot

    def outcome(self, names: Sequence[str]) -> tuple[list[int], list[Row]]:
        """Answer the indexes of standing rows that go, and the rows that come, by these columns."""
        changed = [slot for slot in self.slots if _values(slot.now, names) != _values(slot.before, names)]
        going = [slot.index for slot in changed if slot.index is not None]
        return going, [slot.now for slot in changed if slot.now is not None]


def _values(row: Row | None, names: Sequence[str]) -> list[Any] | None:
    return None if row is None else [row.get(name) for name in names]


Present: TypeAlias = Mapping[Group, Row]


class Effect(NamedTuple):
    """How the journal acts on one table.

    Attributes:
        kinds: The kinds of change whose body it reads.
        every_change: Whether every change of a group touches it, whatever its body says.
        question: Which standing rows a piece may touch.
        lay_over: Changes rows by entries, which are in the order of their histories. ``Present`` holds the rows
            of ``groups`` before this piece.
    """

    table: Table
    kinds: frozenset[str]
    question: Callable[[Sequence[Entry]], Question]
    lay_over: Callable[[Sequence[Entry], Rows, Present], None]
    every_change: bool = False

    def concerns(self, kind: str, group_id: str | None) -> bool:
        """Answer whether such a change touches this table."""
        return group_id is not None if self.every_change else kind in self.kinds

    def rows_wanted(self) -> pc.Expression:
        """Test the same of rows of ``changes``."""
        return pc.field("group_id").is_valid() if self.every_change else _is_in("kind", self.kinds)

    def reads(self, kind: str) -> bool:
        """Answer whether it reads the body of such a change."""
        return kind in self.kinds


def _kinds(*bodies: type[msgspec.Struct]) -> frozenset[str]:
    return frozenset(str(body.__struct_config__.tag) for body in bodies)


def _range(values: Iterable[Any]) -> tuple[Any, Any]:
    distinct = set(values)
    return min(distinct), max(distinct)


def _is_in(column: str, values: Iterable[Any]) -> pc.Expression:
    return pc.field(column).isin(pa.array(sorted(set(values))))


def _of_groups(entries: Sequence[Entry]) -> tuple[pc.Expression, dict[str, tuple[Any, Any]]]:
    names = [entry.group_id for entry in entries if entry.group_id is not None]
    clusters = [entry.cluster for entry in entries]
    wanted = _is_in("cluster", clusters) & _is_in("group_id", names)
    return wanted, {"cluster": _range(clusters), "group_id": _range(names)}


# -- assignments --------------------------------------------------------------------------------------------------


def _open_spans(entries: Sequence[Entry]) -> Question:
    wanted, bounds = _of_groups(entries)
    return Question(wanted & pc.field("valid_to").is_null(), bounds, some_null="valid_to")


def _lay_over_assignments(entries: Sequence[Entry], rows: Rows, _present: Present) -> None:
    spans = _by_group(rows, _span_key, still_open="valid_to")
    for cluster, group_id, _, body in entries:
        of_group = spans.setdefault((cluster, group_id), {})
        if isinstance(body, journal.QueueAssigned):
            row = {"cluster": cluster, "group_id": group_id, "valid_to": None, **msgspec.structs.asdict(body)}
            # A span that is open goes on, as after a restored state.
            if _span_key(row) not in of_group:
                of_group[_span_key(row)] = rows.add(row)
        elif isinstance(body, journal.QueueResumed):
            slot = of_group.get(_span_key(msgspec.structs.asdict(body)))
            if slot is not None and slot.now is not None:
                slot.now |= {"pause_ms": body.pause_ms, "pause_estimated_ms": None}
        elif isinstance(body, journal.QueueReleased):
            slot = of_group.pop(_span_key(msgspec.structs.asdict(body)), None)
            # Tables that were begun anew do not know what was open before them.
            if slot is not None and slot.now is not None:
                slot.now = _ended(slot.now, "valid_from", "valid_to", body.valid_to)
        elif isinstance(body, journal.MemberChanged) and body.former_member_id is not None:
            for key, slot in list(of_group.items()):
                if slot.now is not None and slot.now["member_id"] == body.former_member_id:
                    del of_group[key]
                    slot.now["member_id"] = body.member_id
                    of_group[_span_key(slot.now)] = slot


def _span_key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["topic"], row["broker"], row["queue_id"], row["member_id"], row["origin"]


def _ended(row: Row, begin: str, end: str, at: int) -> Row | None:
    """Answer the row with its end; what has no length leaves no row."""
    return None if at <= row[begin] else {**row, end: at}


def _by_group(rows: Rows, key: Callable[[Row], Any], still_open: str | None = None) -> dict[Group, dict[Any, Slot]]:
    """Find the rows by group and key; with ``still_open`` only those in which that column is null."""
    found: dict[Group, dict[Any, Slot]] = {}
    for slot in rows.slots:
        if slot.now is not None and (still_open is None or slot.now[still_open] is None):
            found.setdefault((slot.now["cluster"], slot.now["group_id"]), {})[key(slot.now)] = slot
    return found


# -- members ------------------------------------------------------------------------------------------------------


def _sessions(entries: Sequence[Entry]) -> Question:
    wanted, bounds = _of_groups(entries)
    begins = {entry.body.joined_at for entry in entries if hasattr(entry.body, "joined_at")}
    low, high = min(begins), max(begins)
    joined = pc.field("joined_at")
    wanted &= (joined >= _time(low)) & (joined <= _time(high))
    return Question(wanted, bounds | {"joined_at": (_time(low), _time(high))})


def _time(epoch_ms: int) -> pa.Scalar:
    return pa.scalar(epoch_ms * 1_000, tables.TIME)


def _lay_over_members(entries: Sequence[Entry], rows: Rows, _present: Present) -> None:
    sessions = _by_group(rows, lambda row: (row["member_id"], row["joined_at"]))
    for cluster, group_id, _, body in entries:
        of_group = sessions.setdefault((cluster, group_id), {})
        if isinstance(body, journal.MemberOpened):  # MemberChanged is one too
            former = getattr(body, "former_member_id", None) or body.member_id
            slot = of_group.pop((former, body.joined_at), None)
            if slot is None:
                slot = rows.add({"cluster": cluster, "group_id": group_id})
            slot.now = {**(slot.now or {"cluster": cluster, "group_id": group_id}), **_described(body)}
            of_group[body.member_id, body.joined_at] = slot
        elif isinstance(body, journal.MemberClosed):
            slot = of_group.get((body.member_id, body.joined_at))
            if slot is None:
                slot = of_group[body.member_id, body.joined_at] = rows.add({})
            row = {"cluster": cluster, "group_id": group_id, **(slot.now or {}), **msgspec.structs.asdict(body)}
            slot.now = _ended(row, "joined_at", "left_at", body.left_at)
        elif isinstance(body, journal.MemberReopened):
            slot = of_group.get((body.member_id, body.joined_at))
            if slot is not None and slot.now is not None:
                slot.now = {**slot.now, "left_at": None, "left_reason": None, "last_heartbeat_at": None}


def _described(body: journal.MemberOpened) -> Row:
    described = msgspec.structs.asdict(body)
    if described.get("former_member_id") is None:
        # Once told, it stays: later descriptions do not repeat it.
        described.pop("former_member_id", None)
    return described


# -- groups -------------------------------------------------------------------------------------------------------


def _groups(entries: Sequence[Entry]) -> Question:
    return Question(*_of_groups(entries))


def _lay_over_groups(entries: Sequence[Entry], rows: Rows, _present: Present) -> None:
    now = _by_group(rows, lambda _row: None)
    for cluster, group_id, _, body in entries:
        of_group = now.setdefault((cluster, group_id), {})
        if isinstance(body, journal.GroupChanged):
            if None not in of_group:
                of_group[None] = rows.add({})
            of_group[None].now = {"cluster": cluster, "group_id": group_id, **msgspec.structs.asdict(body)}
        elif isinstance(body, journal.GroupRemoved) and None in of_group:
            of_group[None].now = None


# -- group_minutes ------------------------------------------------------------------------------------------------

_STATE = ("members", "idle_members", "unassigned_queues", "spread")


def _minutes(entries: Sequence[Entry]) -> Question:
    wanted, bounds = _of_groups(entries)
    first, last = map(_time, _range(_minute(entry.event_time) for entry in entries))
    minute = pc.field("minute")
    return Question(wanted & (minute >= first) & (minute <= last), bounds | {"minute": (first, last)})


def _minute(event_time: int) -> int:
    return event_time - event_time % MINUTE_MS


def _lay_over_minutes(entries: Sequence[Entry], rows: Rows, present: Present) -> None:
    minutes = _by_group(rows, lambda row: row["minute"])
    states: dict[Group, Row] = {}
    for cluster, group_id, event_time, body in entries:
        if group_id is None:
            continue
        group = (cluster, group_id)
        state = states.setdefault(group, _state(present.get(group)))
        changes_state = isinstance(body, journal.GroupChanged | journal.GroupRemoved)
        if changes_state:
            state = states[group] = _state(msgspec.structs.asdict(body))
        of_group = minutes.setdefault(group, {})
        minute = _minute(event_time)
        if minute not in of_group:
            nothing = {"rebalances": 0, "queues_moved": 0, "queue_pause_ms": 0}
            of_group[minute] = rows.add(
                {"cluster": cluster, "group_id": group_id, "minute": minute, **nothing, **state}
            )
        slot = of_group[minute]
        if slot.now is None:
            continue
        if changes_state:
            slot.now |= state
        elif isinstance(body, journal.Rebalanced):
            slot.now |= _with_rebalance(slot.now, body)
        elif isinstance(body, journal.QueueAssigned | journal.QueueResumed) and body.pause_ms is not None:
            slot.now["queue_pause_ms"] = (slot.now["queue_pause_ms"] or 0) + body.pause_ms


def _state(row: Mapping[str, Any] | None) -> Row:
    return {name: (row or {}).get(name) or 0 for name in _STATE}


def _with_rebalance(minute: Row, body: journal.Rebalanced) -> Row:
    # Before its first rebalance 0 means that there was none; queues may have been taken over already.
    pause = minute["queue_pause_ms"] if minute["rebalances"] else minute["queue_pause_ms"] or None
    if body.queue_pause_ms is not None:
        pause = (pause or 0) + body.queue_pause_ms
    return {
        "rebalances": minute["rebalances"] + 1,
        "queues_moved": minute["queues_moved"] + body.queues_moved,
        "queue_pause_ms": pause,
        **{name: getattr(body, name) for name in _STATE},
    }


# -- topics and findings ------------------------------------------------------------------------------------------


def _open_topics(entries: Sequence[Entry]) -> Question:
    names = [entry.body.topic for entry in entries if isinstance(entry.body, journal.TopicChanged)]
    clusters = [entry.cluster for entry in entries]
    wanted = _is_in("cluster", clusters) & _is_in("topic", names) & pc.field("valid_to").is_null()
    return Question(wanted, {"cluster": _range(clusters), "topic": _range(names)}, some_null="valid_to")


def _lay_over_topics(entries: Sequence[Entry], rows: Rows, _present: Present) -> None:
    spans = {
        (slot.now["cluster"], slot.now["topic"]): slot
        for slot in rows.slots
        if slot.now is not None and slot.now["valid_to"] is None
    }
    for cluster, _, _, body in entries:
        if not isinstance(body, journal.TopicChanged):
            continue
        before = spans.pop((cluster, body.topic), None)
        if before is not None and before.now is not None:
            before.now = _ended(before.now, "valid_from", "valid_to", body.valid_from)
        if body.queue_count:
            row = {"cluster": cluster, "valid_to": None, **msgspec.structs.asdict(body)}
            spans[cluster, body.topic] = rows.add({**row, "queues": [_queue(queue) for queue in body.queues]})


def _queue(queue: Mapping[str, Any]) -> Row:
    racks = queue.get("racks")
    if racks is None and queue.get("rack") is not None:
        racks = [queue["rack"]]
    return {"broker": queue.get("broker"), "queue_id": queue.get("queue_id"), "racks": racks}


def _named_findings(entries: Sequence[Entry]) -> Question:
    names = [entry.body.finding_id for entry in entries if hasattr(entry.body, "finding_id")]
    return Question(_is_in("finding_id", names), {"finding_id": _range(names)})


def _lay_over_findings(entries: Sequence[Entry], rows: Rows, _present: Present) -> None:
    findings = {slot.now["finding_id"]: slot for slot in rows.slots if slot.now is not None}
    for cluster, group_id, _, body in entries:
        if isinstance(body, journal.FindingOpened):
            if body.finding_id not in findings:
                findings[body.finding_id] = rows.add({})
            told = msgspec.structs.asdict(body)
            told["kind"] = told.pop("finding")
            findings[body.finding_id].now = {"cluster": cluster, "group_id": group_id, "closed_at": None, **told}
        elif isinstance(body, journal.FindingClosed):
            slot = findings.get(body.finding_id)
            if slot is not None and slot.now is not None:
                slot.now = {**slot.now, "closed_at": body.closed_at}


# In the order in which they are written: group_minutes reads groups as it stood before, so groups comes last.
EFFECTS: tuple[Effect, ...] = (
    Effect(
        tables.ASSIGNMENTS,
        _kinds(journal.QueueAssigned, journal.QueueResumed, journal.QueueReleased, journal.MemberChanged),
        _open_spans,
        _lay_over_assignments,
    ),
    Effect(
        tables.MEMBERS,
        _kinds(journal.MemberOpened, journal.MemberChanged, journal.MemberClosed, journal.MemberReopened),
        _sessions,
        _lay_over_members,
    ),
    Effect(tables.TOPICS, _kinds(journal.TopicChanged), _open_topics, _lay_over_topics),
    Effect(tables.FINDINGS, _kinds(journal.FindingOpened, journal.FindingClosed), _named_findings, _lay_over_findings),
    Effect(
        tables.GROUP_MINUTES,
        _kinds(
            journal.Rebalanced,
            journal.GroupChanged,
            journal.GroupRemoved,
            journal.QueueAssigned,
            journal.QueueResumed,
        ),
        _minutes,
        _lay_over_minutes,
        every_change=True,
    ),
    Effect(tables.GROUPS, _kinds(journal.GroupChanged, journal.GroupRemoved), _groups, _lay_over_groups),
)
