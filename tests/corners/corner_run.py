"""Runs a corner: a small history of events with the rows that must come of it, through the core and the tables' rules.

A corner is a JSON file: ``name``, ``why``, ``events``, ``expect``. An event is one of the contract, but for:

- ``t``: its time in ms after time 0. ``wave``: the batch it comes in, 0 when absent.
- ``cluster``: the name of a cluster; absent: ``only``. Groups are named ``cluster/group`` then, else ``group``.
- ``system`` (kafka), ``schema_version`` (1) and ``event_id`` (a fresh one; ``null``: none) may be left out.

``"cuts": ["waves"]``: it may come out otherwise in other batches, as late events do.
``"base": "now"``: time 0 lies half a minute before the first batch, else hours.

``expect`` holds, each as far as it is of interest:

- ``rebalances``: all rows of each group named, in order; ``trigger`` and ``agrees`` are lists of which one must be,
  ``kinds`` and ``not_kinds`` are kinds that must (not) be among the triggers, any other key is a column.
  ``no_rebalances``: groups without any.
- ``assignments_now``, ``reported_now``: group -> member -> open spans, ``[topic, broker or null for any, queue_id]``.
- ``owner_at``: ``[group, topic, queue_id, t, member or null]``, of origin ``computed``.
- ``spans``: all spans of a queue as ``[member, valid_from, valid_to]``; ``origin``, ``instance_id``, ``inferred``,
  ``generation``; ``one_rebalance``: all name the same rebalance.
- ``members``: a session that is there; ``sessions``: how many the member has in all.
- ``findings``: ``[group, kind, open?]``; ``never``: ``[group, kind]`` that did not even open for a moment;
  ``messages``: ``[group, kind, text]`` of a finding that is open, and of its advice.
- ``late``, ``rejected``, ``rejected_reasons``: numbers of rejected rows.
- ``audits``: of a group's generation, each key a column; ``differing`` as ``[topic, queue_id, kind]``.
  ``groups``: the same of a group now.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from streaming.tables.journal_entries import Entry
from streaming.tables.projections import PROJECTIONS
from streaming.tables.row_edits import RowEdits
from tests.core_config import core_config
from tests.simulation.core_run import CoreRun
from udfs.model.config import CoreConfig

CORNERS = Path(__file__).parent
BASE_MS = 1_772_323_200_000  # 2026-03-01
_LONG_AFTER_MS = 6 * 3_600_000
_SOON_AFTER_MS = 30_000

Event = dict[str, Any]
Row = dict[str, Any]
Cut = Callable[[Sequence[Event]], list[list[Event]]]


def corner(name: str) -> Row:
    """Read a corner."""
    read: Row = json.loads((CORNERS / f"{name}.json").read_text(encoding="utf-8"))
    return read


def in_waves(events: Sequence[Event]) -> list[list[Event]]:
    """Cut a history as its waves say."""
    waves: dict[int, list[Event]] = {}
    for event in events:
        waves.setdefault(event.get("wave", 0), []).append(event)
    return [waves[wave] for wave in sorted(waves)]


def in_one(events: Sequence[Event]) -> list[list[Event]]:
    """Put a history into one batch."""
    return [list(events)]


def one_by_one(events: Sequence[Event]) -> list[list[Event]]:
    """Give each event a batch of its own, in the order of their times."""
    return [[event] for event in sorted(events, key=lambda event: event["t"])]


class CornerRun:
    """A history that was run, and its tables."""

    def __init__(
        self, events: Sequence[Event], cut: Cut = in_waves, *, soon: bool = False, config: CoreConfig | None = None
    ) -> None:
        numbered = [{"event_id": f"e{number}"} | event for number, event in enumerate(events)]
        self.core = CoreRun(config or core_config(allowed_lateness_ms=2_000))
        for number, batch in enumerate(cut(numbered)):
            batch_ms = BASE_MS + (_SOON_AFTER_MS if soon else _LONG_AFTER_MS) + number * 10_000
            self.core.batch(batch_ms, [_line(event) for event in batch])

    def tables(self) -> dict[str, list[Row]]:
        """Return the rows of the tables of spans and of the present."""
        entries: dict[tuple[Any, ...], list[Entry]] = {}
        for change in sorted(
            self.core.changes, key=lambda change: (change.cluster, change.group_id or "", change.number)
        ):
            entry = Entry(change.cluster, change.group_id, change.event_time, change.body)
            entries.setdefault((change.cluster, change.group_id, change.subject), []).append(entry)
        found: dict[str, list[Row]] = {}
        for projection in PROJECTIONS:
            rows = RowEdits([])
            for history in entries.values():
                projection.apply_changes(history, rows, {})
            found[projection.table.name] = [edit.now for edit in rows.edits if edit.now is not None]
        return found

    def outcome(self) -> dict[str, Any]:
        """Return all rows, in an order of their own, without what may depend on how the history was cut."""
        tables = {name: sorted(map(_plain, rows)) for name, rows in self.tables().items()}
        tables["rebalances"] = sorted(_plain({**row, "detected_at": None}) for row in self.core.rows())
        tables["rejected_events"] = sorted(f"{rejected.reason} {rejected.raw}" for rejected in self.core.rejected)
        return tables


def run_corner(history: Row, cut: Cut = in_waves) -> CornerRun:
    """Run a corner as it says."""
    return CornerRun(history["events"], cut, soon=history.get("base") == "now")


def differences(run: CornerRun, expect: Mapping[str, Any]) -> list[str]:
    """Return one sentence for each expectation that is not met."""
    return list(_Comparison(run, expect).all())


def _line(event: Event) -> bytes:
    fields = {"schema_version": 1, "system": "kafka", "cluster": "only"} | event
    fields["event_time"] = BASE_MS + fields.pop("t")
    fields.pop("wave", None)
    if fields["event_id"] is None:
        del fields["event_id"]
    return json.dumps(fields).encode()


def _plain(row: Row) -> str:
    return json.dumps(msgspec.to_builtins(row), sort_keys=True)


class _Comparison:
    def __init__(self, run: CornerRun, expect: Mapping[str, Any]) -> None:
        self.expect = expect
        self.tables = run.tables()
        self.rebalances = run.core.rows()
        self.rejected = [rejected.reason for rejected in run.core.rejected]

    def all(self) -> Iterable[str]:
        yield from self._rebalances()
        yield from self._now("assignments_now", "computed")
        yield from self._now("reported_now", "reported")
        yield from self._owners()
        yield from self._spans()
        yield from self._members()
        for group, kind, is_open in self.expect.get("findings", ()):
            found = any(row["kind"] == kind and row["closed_at"] is None for row in self._of("findings", group))
            if found is not is_open:
                yield f"{group}: finding {kind} open: {found}"
        yield from self._texts()
        yield from self._columns()
        counts = Counter(self.rejected)
        late = counts.pop("late", 0)
        if late != self.expect.get("late", late):
            yield f"{late} late rows"
        if counts.total() != self.expect.get("rejected", 0):
            yield f"rejected: {counts}"
        for reason, number in self.expect.get("rejected_reasons", {}).items():
            if counts[reason] != number:
                yield f"rejected as {reason}: {counts[reason]}"

    def _texts(self) -> Iterable[str]:
        for group, kind in self.expect.get("never", ()):
            if any(row["kind"] == kind for row in self._of("findings", group)):
                yield f"{group}: finding {kind} opened"
        for group, kind, text in self.expect.get("messages", ()):
            rows = [row for row in self._of("findings", group) if row["kind"] == kind and row["closed_at"] is None]
            if [row["message"] for row in rows if text in f"{row['message']} {row['advice']}"] == []:
                yield f"{group}: no open finding {kind} says {text!r}: {rows}"

    def _columns(self) -> Iterable[str]:
        for name in ("audits", "groups"):
            for wanted in self.expect.get(name, ()):
                rows = [
                    row
                    for row in self._of(name, wanted["group_id"])
                    if name == "groups" or row["generation"] == wanted["generation"]
                ]
                if not rows:
                    yield f"{wanted['group_id']}: no row of {name} as {wanted}"
                for row in rows:
                    for column in wanted.keys() - {"group_id", "generation", "differing"}:
                        if row[column] != wanted[column]:
                            yield f"{wanted['group_id']}: {name}.{column} is not {wanted[column]}: {row}"
                    listed = [[queue["topic"], queue["queue_id"], queue["kind"]] for queue in row.get("differing", ())]
                    if wanted.get("differing", listed) != listed:
                        yield f"{wanted['group_id']}: {name} lists {listed}"

    def _of(self, table: str, group: str) -> list[Row]:
        rows = self.rebalances if table == "rebalances" else self.tables[table]
        cluster, _, name = group.rpartition("/")
        return [row for row in rows if row["group_id"] == name and row["cluster"] == (cluster or "only")]

    def _rebalances(self) -> Iterable[str]:
        wanted: dict[str, list[Row]] = {group: [] for group in self.expect.get("no_rebalances", ())}
        for row in self.expect.get("rebalances", ()):
            wanted.setdefault(row["group_id"], []).append(row)
        for group, rows in wanted.items():
            found = sorted(self._of("rebalances", group), key=lambda row: (row["event_time"], row["generation"]))
            if len(found) != len(rows):
                yield f"{group}: rebalances {[(row['event_time'] - BASE_MS, row['trigger']) for row in found]}"
            for rebalance, row in zip(found, rows, strict=False):
                for name, value in row.items():
                    if name != "group_id" and not _fits(rebalance, name, value):
                        yield f"{group} at {row['event_time_ms']}: {name} is not {value}: {rebalance}"

    def _now(self, name: str, origin: str) -> Iterable[str]:
        for group, wanted in self.expect.get(name, {}).items():
            found: dict[str, list[tuple[Any, ...]]] = {}
            for row in self._of("assignments", group):
                if row["origin"] == origin and row["valid_to"] is None:
                    found.setdefault(row["member_id"], []).append((row["topic"], row["broker"], row["queue_id"]))
            held = {member: queues for member, queues in wanted.items() if queues}
            same = found.keys() == held.keys() and all(_same_queues(found[member], held[member]) for member in held)
            if not same:
                yield f"{group}: {origin} now {found}"

    def _queue(self, group: str, topic: str, queue_id: int, origin: str) -> list[Row]:
        rows = [
            row
            for row in self._of("assignments", group)
            if (row["topic"], row["queue_id"], row["origin"]) == (topic, queue_id, origin)
        ]
        return sorted(rows, key=lambda row: (row["valid_from"], row["member_id"]))

    def _owners(self) -> Iterable[str]:
        for group, topic, queue_id, t, member in self.expect.get("owner_at", ()):
            at = BASE_MS + t
            rows = self._queue(group, topic, queue_id, "computed")
            found = [
                row["member_id"]
                for row in rows
                if row["valid_from"] <= at and (row["valid_to"] is None or at < row["valid_to"])
            ]
            if found != ([] if member is None else [member]):
                yield f"{group}: owner of {topic} {queue_id} at {t}: {found}"

    def _spans(self) -> Iterable[str]:
        for wanted in self.expect.get("spans", ()):
            group, origin = wanted["group_id"], wanted.get("origin", "computed")
            rows = self._queue(group, wanted["topic"], wanted["queue_id"], origin)
            found = [[row["member_id"], _after(row["valid_from"]), _after(row["valid_to"])] for row in rows]
            if found != wanted["owners"]:
                yield f"{group}: spans of {wanted['topic']} {wanted['queue_id']} ({origin}): {found}"
            if wanted.get("one_rebalance") and len({row["rebalance_id"] for row in rows}) != 1:
                yield f"{group}: spans of {wanted['topic']} {wanted['queue_id']} name several rebalances"
            for name in ("instance_id", "inferred", "generation"):
                if name in wanted and any(row.get(name) != wanted[name] for row in rows):
                    yield f"{group}: {name} of {wanted['topic']} {wanted['queue_id']}: {rows}"

    def _members(self) -> Iterable[str]:
        for wanted in self.expect.get("members", ()):
            group, member = wanted["group_id"], wanted["member_id"]
            sessions = [row for row in self._of("members", group) if row["member_id"] == member]
            if len(sessions) != wanted.get("sessions", len(sessions)):
                yield f"{group}: {member} has {len(sessions)} sessions"
            columns = {name: wanted[name] for name in wanted.keys() - {"group_id", "member_id", "sessions"}}
            for name in [name for name in columns if name.endswith("_at_ms")]:
                at = columns.pop(name)
                columns[name.removesuffix("_ms")] = None if at is None else BASE_MS + at
            if not any(all(row.get(name) == value for name, value in columns.items()) for row in sessions):
                yield f"{group}: no session of {member} with {columns}: {sessions}"


def _after(at: int | None) -> int | None:
    return None if at is None else at - BASE_MS


def _fits(row: Row, name: str, value: Any) -> bool:
    kinds = {trigger["kind"] for trigger in row["triggers"]}
    if name == "event_time_ms":
        return bool(row["event_time"] == BASE_MS + value)
    if name in ("trigger", "agrees"):
        return row[name] in value
    if name == "kinds":
        return kinds >= set(value)
    if name == "not_kinds":
        return not kinds & set(value)
    if name == "strategy" and value is not None:
        return row[name] in (value, f"{row['system']}.{value}")
    return bool(row[name] == value)


def _same_queues(found: Sequence[tuple[Any, ...]], wanted: Sequence[Sequence[Any]]) -> bool:
    if len(found) != len(wanted):
        return False
    return all(
        any(owned[::2] == (topic, queue) and broker in (None, owned[1]) for owned in found)
        for topic, broker, queue in wanted
    )
