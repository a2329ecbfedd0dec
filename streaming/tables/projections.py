"""Shell: the effect of an ordered piece of the journal on the rows of one table. No I/O.

The journal may be cut anywhere; the effect of the pieces, one after another, is the effect of the whole. So a piece is
applied to the current rows: a span opened and closed at one event time leaves nothing, a session that ended by mistake
continues, and rows that end up unchanged are not written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from streaming.tables import schema
from streaming.tables.annotation_projection import ANNOTATION_KINDS, annotation_filter, apply_to_annotations
from streaming.tables.columns import EARLIER, MAX_EARLIER
from streaming.tables.episode_projection import EPISODE_KINDS, apply_to_episodes, episode_filter
from streaming.tables.journal_entries import (
    Entry,
    Group,
    Present,
    RowFilter,
    kinds_of,
    of_groups,
)
from streaming.tables.row_edits import RowEdit, RowEdits, ended
from streaming.tables.schema import Row, Table
from streaming.tables.span_projection import SPAN_KINDS, apply_to_spans, span_filter
from udfs.model import journal
from udfs.model.audits import Audited
from udfs.model.member_fields import SHOWN, kind_of
from udfs.model.spans import QueueResumed, QueuesReassigned

MINUTE_MS = 60_000


class Projection(NamedTuple):
    """The journal's effect on one table.

    Attributes:
        kinds: The kinds of change whose body it reads.
        every_change: Whether every change of a group touches the table, whatever its body is; of changes that it does
            not read, the first of each minute is enough.
        row_filter: Returns the limits of the current rows that a piece may touch.
        apply_changes: Changes rows by entries, which are in the order of their histories. ``Present`` holds the rows of
            ``groups`` before this piece.
    """

    table: Table
    kinds: frozenset[str]
    row_filter: Callable[[Sequence[Entry]], RowFilter]
    apply_changes: Callable[[Sequence[Entry], RowEdits, Present], None]
    every_change: bool = False

    def concerns(self, kind: str, group_id: str | None) -> bool:
        """Return whether such a change touches this table."""
        return group_id is not None if self.every_change else kind in self.kinds


def _by_group(rows: RowEdits, key: Callable[[Row], Any]) -> dict[Group, dict[Any, RowEdit]]:
    """Find the rows by group and key."""
    found: dict[Group, dict[Any, RowEdit]] = {}
    for edit in rows.edits:
        if edit.now is not None:
            found.setdefault((edit.now["cluster"], edit.now["group_id"]), {})[key(edit.now)] = edit
    return found


# -- members ------------------------------------------------------------------------------------------------------


_LISTS = tuple(name for name in SHOWN if kind_of(name) is tuple)
_KEPT = tuple(field.name for field in EARLIER.value_type if field.name in SHOWN)


def _sessions(entries: Sequence[Entry]) -> RowFilter:
    begins = {entry.body.joined_at for entry in entries if entry.body and hasattr(entry.body, "joined_at")}
    return RowFilter(of_groups(entries), {"joined_at": (min(begins), max(begins))})


def _apply_to_members(entries: Sequence[Entry], rows: RowEdits, _present: Present) -> None:
    sessions = _by_group(rows, lambda row: (row["member_id"], row["joined_at"]))
    for cluster, group_id, event_time, body in entries:
        of_group = sessions.setdefault((cluster, group_id), {})
        if isinstance(body, journal.MemberOpened):  # MemberChanged is a subclass
            edit = of_group.pop((body.member_id, body.joined_at), None)
            if edit is None:
                edit = rows.add({})
            row = edit.now or {"cluster": cluster, "group_id": group_id}
            edit.now = {**row, **_described(body)}
            if isinstance(body, journal.MemberChanged):
                edit.now["earlier"] = _earlier(row, edit.now, event_time)
            of_group[body.member_id, body.joined_at] = edit
        elif isinstance(body, journal.MemberClosed):
            edit = of_group.get((body.member_id, body.joined_at))
            if edit is None:
                edit = of_group[body.member_id, body.joined_at] = rows.add({})
            row = {"cluster": cluster, "group_id": group_id, **(edit.now or {}), **msgspec.structs.asdict(body)}
            edit.now = ended(row, "joined_at", "left_at", body.left_at)
        elif isinstance(body, journal.MemberReopened):
            edit = of_group.get((body.member_id, body.joined_at))
            if edit is not None and edit.now is not None:
                edit.now = {**edit.now, "left_at": None, "left_reason": None, "last_heartbeat_at": None}


def _described(body: journal.MemberOpened) -> Row:
    described = msgspec.structs.asdict(body)
    for name in _LISTS:
        described[name] = None if described[name] is None else list(described[name])
    if described["strategy_settings"] is not None:
        described["strategy_settings"] = msgspec.json.encode(body.strategy_settings, order="deterministic").decode()
    if described["former_member_id"] is None:
        # Once reported it stays, because later descriptions do not repeat it.
        del described["former_member_id"]
    return described


def _earlier(before: Row, now: Row, event_time: int) -> list[Row] | None:
    """Return a session's earlier descriptions once it has another one from a time on."""
    earlier: list[Row] = list(before.get("earlier") or ())
    held_from = earlier[-1]["until_ms"] if earlier else before.get("joined_at", event_time)
    if held_from < event_time and any(before.get(name) != now[name] for name in _KEPT):
        earlier.append({"until_ms": event_time, **{name: before.get(name) for name in _KEPT}})
    return earlier[-MAX_EARLIER:] or None


# -- groups -------------------------------------------------------------------------------------------------------


def _groups(entries: Sequence[Entry]) -> RowFilter:
    return RowFilter(of_groups(entries))


def _apply_to_groups(entries: Sequence[Entry], rows: RowEdits, _present: Present) -> None:
    now = _by_group(rows, lambda _row: None)
    for cluster, group_id, _, body in entries:
        of_group = now.setdefault((cluster, group_id), {})
        if isinstance(body, journal.GroupChanged):
            if None not in of_group:
                of_group[None] = rows.add({})
            of_group[None].now = {"cluster": cluster, "group_id": group_id, **_group_row(body)}
        elif isinstance(body, journal.GroupRemoved) and None in of_group:
            of_group[None].now = None


def _group_row(body: journal.GroupChanged) -> Row:
    row = msgspec.structs.asdict(body)
    if body.member_epochs is not None:
        row["member_epochs"] = [msgspec.structs.asdict(epoch) for epoch in body.member_epochs]
    if body.reconciling is not None:
        row["reconciling"] = [_reconciling(member) for member in body.reconciling]
    return row


def _reconciling(member: journal.ReconcilingMember) -> Row:
    row = msgspec.structs.asdict(member)
    return row | {
        name: [msgspec.structs.asdict(topic) for topic in row[name]] for name in ("assigned", "revoking", "target")
    }


# -- group_minutes ------------------------------------------------------------------------------------------------

_STATE = ("members", "idle_members", "unassigned_queues", "spread")
_OUTAGES = ("outage_min_ms", "outage_max_ms")
_PER_MINUTE = ("queue_pause_ms", *_OUTAGES)


def _minutes(entries: Sequence[Entry]) -> RowFilter:
    minutes = {_minute(entry.event_time) for entry in entries}
    return RowFilter(of_groups(entries), {"minute": (min(minutes), max(minutes))})


def _minute(event_time: int) -> int:
    return event_time - event_time % MINUTE_MS


def _apply_to_minutes(entries: Sequence[Entry], rows: RowEdits, present: Present) -> None:
    minutes = _by_group(rows, lambda row: row["minute"])
    states: dict[Group, Row] = {}
    for cluster, group_id, event_time, body in entries:
        if group_id is None:
            continue
        group = (cluster, group_id)
        state = states.setdefault(group, _state(present.get(group)))
        changes_state = False
        if isinstance(body, journal.GroupChanged | journal.GroupRemoved):
            changes_state = True
            state = states[group] = _state(msgspec.structs.asdict(body))
        of_group = minutes.setdefault(group, {})
        minute = _minute(event_time)
        if minute not in of_group:
            nothing = {"rebalances": 0, "queues_moved": 0, "queue_pause_ms": 0, **dict.fromkeys(_OUTAGES)}
            of_group[minute] = rows.add(
                {"cluster": cluster, "group_id": group_id, "minute": minute, **nothing, **state}
            )
        edit = of_group[minute]
        if edit.now is None:
            continue
        if changes_state:
            edit.now |= state
        elif isinstance(body, journal.Rebalanced):
            edit.now |= _with_rebalance(edit.now, body)
        elif isinstance(body, journal.MemberReplaced):
            for name in _OUTAGES:
                observed = [value for outage in body.outages if (value := getattr(outage, name)) is not None]
                edit.now[name] = _sum(edit.now[name], sum(observed) if observed else None)
        elif (pause_ms := _pause_of(body)) is not None:
            edit.now["queue_pause_ms"] = (edit.now["queue_pause_ms"] or 0) + pause_ms


def _pause_of(body: journal.Body | None) -> int | None:
    """Return how long queues that found an owner by this change had none, as far as observed."""
    if isinstance(body, QueueResumed):
        return body.pause_ms
    if not isinstance(body, QueuesReassigned):
        return None
    pauses = [
        run.pause_ms * (run.last - run.first + 1)
        for topic in body.topics
        for run in topic.assigned
        if run.pause_ms is not None
    ]
    return sum(pauses) if pauses else None


def _state(row: Mapping[str, Any] | None) -> Row:
    return {name: (row or {}).get(name, 0) for name in _STATE}


def _with_rebalance(minute: Row, body: journal.Rebalanced) -> Row:
    # Before the first rebalance, 0 means that there was none; queues may have been taken over already.
    before = {name: minute[name] if minute["rebalances"] else minute[name] or None for name in _PER_MINUTE}
    return {
        "rebalances": minute["rebalances"] + 1,
        "queues_moved": minute["queues_moved"] + body.queues_moved,
        **{name: _sum(before[name], getattr(body, name)) for name in _PER_MINUTE},
        **{name: getattr(body, name) for name in _STATE},
    }


def _sum(first: int | None, other: int | None) -> int | None:
    return first if other is None else (first or 0) + other


# -- topics and findings ------------------------------------------------------------------------------------------


def _open_topics(entries: Sequence[Entry]) -> RowFilter:
    topics = {entry.body.topic for entry in entries if isinstance(entry.body, journal.TopicChanged)}
    clusters = {entry.cluster for entry in entries}
    return RowFilter({"cluster": sorted(clusters), "topic": sorted(topics)}, ends="valid_to")


def _apply_to_topics(entries: Sequence[Entry], rows: RowEdits, _present: Present) -> None:
    spans = {
        (edit.now["cluster"], edit.now["topic"]): edit
        for edit in rows.edits
        if edit.now is not None and edit.now["valid_to"] is None
    }
    for cluster, _, _, body in entries:
        if not isinstance(body, journal.TopicChanged):
            continue
        before = spans.pop((cluster, body.topic), None)
        if before is not None and before.now is not None:
            before.now = ended(before.now, "valid_from", "valid_to", body.valid_from)
        if body.queue_count:
            row = {"cluster": cluster, "valid_to": None, **msgspec.structs.asdict(body)}
            spans[cluster, body.topic] = rows.add({**row, "queues": [_queue(queue) for queue in body.queues]})


def _queue(queue: Mapping[str, Any]) -> Row:
    racks = queue.get("racks")
    if racks is None and queue.get("rack") is not None:
        racks = [queue["rack"]]
    return {"broker": queue.get("broker"), "queue_id": queue.get("queue_id"), "racks": racks}


def _named_findings(entries: Sequence[Entry]) -> RowFilter:
    names = {entry.body.finding_id for entry in entries if entry.body and hasattr(entry.body, "finding_id")}
    return RowFilter({"finding_id": sorted(names)})


def _apply_to_findings(entries: Sequence[Entry], rows: RowEdits, _present: Present) -> None:
    findings = rows.by("finding_id")
    for cluster, group_id, _, body in entries:
        if isinstance(body, journal.FindingOpened | journal.FindingChanged):
            if body.finding_id not in findings:
                findings[body.finding_id] = rows.add({})
            row = {"cluster": cluster, "group_id": group_id, "closed_at": None, "changed_at": None, **_found(body)}
            findings[body.finding_id].now = row
        elif isinstance(body, journal.FindingClosed):
            edit = findings.get(body.finding_id)
            if edit is not None and edit.now is not None:
                edit.now = {**edit.now, "closed_at": body.closed_at}


def _found(body: journal.FindingFields) -> Row:
    fields = msgspec.structs.asdict(body)
    fields["kind"] = fields.pop("finding")
    for name in ("queues", "members", "clients", "subscriptions"):
        if fields[name]:
            fields[name] = [_as_row(item) for item in fields[name]]
        else:
            fields[name] = fields[f"{name}_left_out"] = None  # the change names none
    return fields


def _as_row(named: msgspec.Struct) -> Row:
    values = msgspec.structs.asdict(named)
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


# -- audits -------------------------------------------------------------------------------------------------------


def _audited(entries: Sequence[Entry]) -> RowFilter:
    times = [entry.body.rebalanced_at for entry in entries if isinstance(entry.body, Audited)]
    return RowFilter(of_groups(entries), {"event_time": (min(times), max(times))})


def _apply_to_audits(entries: Sequence[Entry], rows: RowEdits, _present: Present) -> None:
    audits = rows.by("rebalance_id")
    for cluster, group_id, _, body in entries:
        if isinstance(body, Audited):
            if body.rebalance_id not in audits:
                audits[body.rebalance_id] = rows.add({})
            row = msgspec.structs.asdict(body)
            row["event_time"] = row.pop("rebalanced_at")
            row["differing"] = [msgspec.structs.asdict(queue) for queue in body.differing]
            audits[body.rebalance_id].now = {"cluster": cluster, "group_id": group_id, **row}


GROUPS_PROJECTION = Projection(
    schema.GROUPS, kinds_of(journal.GroupChanged, journal.GroupRemoved), _groups, _apply_to_groups
)

# Marks identify tables by their positions, so a new table goes to the end. `materializer.py` writes groups after
# group_minutes, which reads their previous version.
PROJECTIONS: tuple[Projection, ...] = (
    Projection(schema.ASSIGNMENTS, SPAN_KINDS, span_filter, apply_to_spans),
    Projection(
        schema.MEMBERS,
        kinds_of(journal.MemberOpened, journal.MemberChanged, journal.MemberClosed, journal.MemberReopened),
        _sessions,
        _apply_to_members,
    ),
    Projection(schema.TOPICS, kinds_of(journal.TopicChanged), _open_topics, _apply_to_topics),
    Projection(
        schema.FINDINGS,
        kinds_of(journal.FindingOpened, journal.FindingChanged, journal.FindingClosed),
        _named_findings,
        _apply_to_findings,
    ),
    Projection(
        schema.GROUP_MINUTES,
        kinds_of(
            journal.Rebalanced,
            journal.GroupChanged,
            journal.GroupRemoved,
            QueuesReassigned,
            QueueResumed,
            journal.MemberReplaced,
        ),
        _minutes,
        _apply_to_minutes,
        every_change=True,
    ),
    GROUPS_PROJECTION,
    Projection(schema.AUDITS, kinds_of(Audited), _audited, _apply_to_audits),
    Projection(schema.ANNOTATIONS, ANNOTATION_KINDS, annotation_filter, apply_to_annotations),
    Projection(schema.EPISODES, EPISODE_KINDS, episode_filter, apply_to_episodes),
)
