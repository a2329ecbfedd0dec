"""Shell: rows of a table while a piece of the journal is applied to them, and the open spans among them. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from streaming.tables.schema import Row
from udfs.group.assignment.span_runs import Holders
from udfs.model import journal
from udfs.model.spans import QueueAssigned, QueueReleased, QueueResumed


class RowEdit:
    """One row while a piece of the journal is applied to it."""

    __slots__ = ("before", "index", "now")

    def __init__(self, now: Row | None, before: Row | None = None, index: int | None = None) -> None:
        self.now = now
        self.before = before
        self.index = index


class RowEdits:
    """The current rows that may change, and the new ones."""

    def __init__(self, current: Iterable[Row]) -> None:
        self.edits = [RowEdit(dict(row), row, index) for index, row in enumerate(current)]

    def add(self, row: Row) -> RowEdit:
        """Add a new row."""
        edit = RowEdit(row)
        self.edits.append(edit)
        return edit

    def by(self, column: str) -> dict[Any, RowEdit]:
        """Return the edits of the current rows by their values in a column that identifies them."""
        return {edit.now[column]: edit for edit in self.edits if edit.now is not None}

    def outcome(self, names: Sequence[str]) -> tuple[list[int], list[Row]]:
        """Return the indexes of replaced current rows, and the new rows with these columns."""
        changed = [edit for edit in self.edits if _differs(edit.before, edit.now, names)]
        replaced = [edit.index for edit in changed if edit.index is not None]
        return replaced, [edit.now for edit in changed if edit.now is not None]


def _differs(before: Row | None, now: Row | None, names: Sequence[str]) -> bool:
    if before is None or now is None:
        return before is not now
    return any(before.get(name) != now.get(name) for name in names)


def ended(row: Row, begin: str, end: str, at: int) -> Row | None:
    """Return the row with its end; an empty span leaves no row."""
    return None if at <= row[begin] else {**row, end: at}


class OpenSpans:
    """The open spans of one group, by queue and origin, then by member."""

    def __init__(self) -> None:
        self._by_queue: dict[tuple[Any, ...], dict[str, RowEdit]] = {}

    def add(self, edit: RowEdit) -> None:
        """Add an open span."""
        row = edit.now or {}
        self._by_queue.setdefault(_queue_key(row), {})[row["member_id"]] = edit

    def apply(
        self,
        body: QueueAssigned | QueueReleased,
        rows: RowEdits,
        cluster: str,
        group_id: str | None,
    ) -> None:
        """Open or end one span."""
        fields = msgspec.structs.asdict(body)
        members = self._by_queue.setdefault(_queue_key(fields), {})
        if isinstance(body, QueueAssigned):
            # An open span continues, as after a restored state.
            if body.member_id not in members:
                row = {"cluster": cluster, "group_id": group_id, "valid_to": None, **fields}
                members[body.member_id] = rows.add(row)
            return
        edit = members.pop(body.member_id, None)
        # Recreated tables do not know the spans that were open before.
        if edit is not None and edit.now is not None:
            edit.now = ended(edit.now, "valid_from", "valid_to", body.valid_to)

    def resume(self, body: QueueResumed) -> None:
        """Record how long the queue of an open span had no owner before it."""
        edit = self._by_queue.get(_queue_key(msgspec.structs.asdict(body)), {}).get(body.member_id)
        if edit is not None and edit.now is not None:
            edit.now |= {"pause_ms": body.pause_ms, "pause_estimated_ms": None}
            if body.outage_max_ms is not None:
                edit.now |= {"outage_min_ms": body.outage_min_ms, "outage_max_ms": body.outage_max_ms}

    def split(self, body: journal.MemberReplaced, rows: RowEdits, at: int) -> None:
        """End the open spans of a member's old id, and begin the same spans under its new id."""
        begun = {"member_id": body.member_id, "instance_id": body.instance_id, "valid_from": at}
        outages = {
            (outage.topic, outage.broker, outage.queue_id): (outage.outage_min_ms, outage.outage_max_ms)
            for outage in body.outages
        }
        for key, members in self._by_queue.items():
            edit = members.pop(body.former_member_id, None)
            if edit is not None and edit.now is not None:
                least, most = outages.get(key[:3], (None, None))
                begun |= {"outage_min_ms": least, "outage_max_ms": most}
                row = {**edit.now, **begun, "pause_ms": None, "pause_estimated_ms": None}
                members[body.member_id] = rows.add(row)
                edit.now = ended(edit.now, "valid_from", "valid_to", at)

    def withdraw(self, edits: Iterable[RowEdit], since: int) -> None:
        """Withdraw everything computed from a time on: spans begun since are removed, and spans ended since continue.

        Args:
            edits: All rows of the group that may be touched, open and ended.
        """
        ended_since: list[RowEdit] = []
        for edit in edits:
            row = edit.now
            if row is None or row["origin"] != "computed":
                continue
            if row["valid_from"] >= since:
                if row["valid_to"] is None:
                    self._by_queue[_queue_key(row)].pop(row["member_id"], None)
                edit.now = None
            elif row["valid_to"] is not None and row["valid_to"] >= since:
                edit.now = {**row, "valid_to": None}
                ended_since.append(edit)
        for edit in ended_since:  # after the spans that began since, which may include the same queue and member
            self.add(edit)

    def holders(self, origin: str) -> Holders:
        """Return a function that finds the owners of a queue by this origin."""

        def of(queue: tuple[str, str | None, int]) -> list[tuple[str, str | None]]:
            edits = self._by_queue.get((*queue, origin), {})
            return [(member_id, (edits[member_id].now or {}).get("instance_id")) for member_id in sorted(edits)]

        return of


def _queue_key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["topic"], row["broker"], row["queue_id"], row["origin"]
