"""Core: what the groups of a shard have committed and read in each queue, and end offsets. No I/O.

Commits are evidence about a queue's owner, never liveness: they wake no group. They are stored, and passed to the
group when something else wakes it. Observations newer than the clock wait.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from udfs.model.arrays import Int64, UInt64, find_sorted
from udfs.model.observations import (
    DELETED,
    NOT_NAMED,
    UNKNOWN,
    Newest,
    Observation,
    Offsets,
    QueueFall,
    ReadOffsets,
    log_start,
    newest_of,
)
from udfs.model.stall_rule import StallRule
from udfs.packets.progress_columns import (
    NO_PROGRESS,
    NamedGroup,
    PackedEnds,
    PackedNames,
    PackedProgress,
    ProgressColumns,
)
from udfs.shard.deleted_groups import DeletedQueues, apply_with_deletions, deletions_of_rows, is_ended
from udfs.shard.ends import Ends
from udfs.shard.first_commits import beginning_groups
from udfs.shard.near_queues import NearQueues
from udfs.shard.offset_falls import NO_FALLS, falls_of, groups_of, named_falls
from udfs.shard.queue_histories import (
    OffsetHistories,
    QueueHistories,
    committed_or_unnamed,
    observations_of,
    place_of_earlier,
    undated_or_unknown,
)
from udfs.shard.queue_spans import Look, Reach, SpanRows, in_row_order, match_ends
from udfs.shard.queue_table import QueueRow, QueueTable
from udfs.shard.standing_queues import StandingQueues
from udfs.shard.standstills import evaluated, stalled_rows
from udfs.shard.state_format import Buffer
from udfs.shard.waiting_progress import Waiting, pack_waiting, read_waiting, waiting_columns

# Before a given time, at most this many due rows of a queue are read, which show its last two commits, plus those of
# the two seconds with commits before that.
_LAST_ROWS = 16


class Commits:
    """A shard's observations of queues: those applied, and those waiting for the clock.

    Args:
        queues, offsets, motion, starts: Applied observations, see ``QueueTable``. waiting, waiting_ends: Waiting ones.
        most: At most this many queues of groups are remembered; others are ignored.
    """

    def __init__(
        self,
        queues: Buffer = b"",
        offsets: Buffer = b"",
        waiting: Buffer = b"",
        waiting_ends: Buffer = b"",
        motion: Buffer = b"",
        starts: Buffer = b"",
        most: int = 2**31,
    ) -> None:
        self._data = [queues, offsets, motion, starts]
        self._most = most
        self._table: QueueTable | None = None
        self._has_new_queues = False
        self._has_changed = False
        self._waiting_data, self._ends_data = waiting, waiting_ends
        self._waiting, self._waiting_ends = read_waiting(waiting), Ends.read(waiting_ends)
        self._waiting_changed = self._ends_changed = False
        self._due = NO_PROGRESS
        self._due_are_commits = True
        self._due_rows: Int64 = np.empty(0, np.int64)
        self._due_ends = Ends._make(column[:0] for column in self._waiting_ends)
        self._matched: tuple[Int64, Int64] | None = None
        self._deletions: dict[int, Sequence[int]] = {}
        self._deleted = DeletedQueues(self._due_rows, self._due_rows)
        self._before: QueueTable | None = None  # as it was before the due observations, once they are applied
        self.standing, self.near = StandingQueues(), NearQueues()
        self._falls = NO_FALLS

    @property
    def waiting_times(self) -> Int64:
        """Return the times of all waiting observations."""
        return np.concatenate([self._waiting.times, self._waiting_ends.times])

    def add(self, columns: ProgressColumns, names: Sequence[PackedNames] = ()) -> None:
        """Add observations of any time; if the same rows are named twice, the first name counts."""
        if not len(columns.times):
            return
        table = self._decoded()
        deleted, notes = columns.offsets == DELETED, columns.are_notes
        expected = columns.where(~deleted & ~notes) if deleted.any() or notes.any() else columns
        added = table.expect(expected.groups, expected.queues, self._most)
        named = sum(table.name(some) for some in names) > 0
        self._has_new_queues |= added or named
        self._has_changed |= added
        if len(table) == self._most or deleted.any():  # a queue without a row has nothing to forget
            columns = columns.where(notes | (table.find(columns.groups, columns.queues) >= 0))
        self._waiting = ProgressColumns.concat([self._waiting, columns])
        self._waiting_changed = True

    def add_packed(self, packed: Sequence[PackedProgress]) -> None:
        """Add the observations of packets."""
        columns = ProgressColumns.concat([progress.columns() for progress in packed])
        self.add(columns, [progress.names for progress in packed if progress.names is not None])

    def add_ends(self, packed: PackedEnds) -> None:
        """Add end offsets."""
        self._waiting_ends = Ends._make(map(np.concatenate, zip(self._waiting_ends, packed.columns(), strict=True)))
        self._ends_changed = True

    def make_due(self, clock: int) -> None:
        """Make everything before the clock due; the rest waits."""
        due = self._waiting.times < clock
        if due.any():
            now = self._waiting.where(due)
            table = self._decoded()
            deleted, now = now.where(now.offsets == DELETED), now.where(now.offsets != DELETED)
            rows = table.find(now.groups, now.queues)
            if (rows < 0).any():  # forgotten since it arrived
                self._has_new_queues = self._has_changed = True
                known = now.where(~now.are_notes)
                table.expect(known.groups, known.queues, self._most)
                rows = table.find(now.groups, now.queues)
                now, rows = now.where(rows >= 0), rows[rows >= 0]
            self._due, self._due_rows = in_row_order(now, rows)
            self._due_are_commits = _are_mere_commits(now)
            rows = table.find(deleted.groups, deleted.queues)
            self._deleted = DeletedQueues(rows[rows >= 0], deleted.times[rows >= 0])
            self._falls = falls_of(table, self._due, self._due_rows, self._deleted)
            self._waiting = self._waiting.where(~due)
            self._waiting_changed = True
        ends = self._waiting_ends.times < clock
        if ends.any():
            # Most queues belong to groups of other shards.
            is_mine = ends & (find_sorted(self._decoded().by_key()[0], self._waiting_ends.queues) >= 0)
            self._due_ends = Ends._make(column[is_mine] for column in self._waiting_ends)
            self._waiting_ends = Ends._make(column[~ends] for column in self._waiting_ends)
            self._ends_changed = True

    def beginning_groups(self, find: Callable[[UInt64], Int64], forget_before: int) -> list[tuple[int, NamedGroup]]:
        """Return the groups that begin to commit, see ``first_commits``."""
        return beginning_groups(self._decoded(), self._due, find, forget_before) if len(self._due.times) else []

    def note_deletions(self, group: int, times: Sequence[int]) -> None:
        """Record when a group was deleted: its commits up to then are forgotten."""
        if times:
            self._deletions[group] = times

    def apply_due(
        self,
        *,
        span_ms: int,
        before: int | None,
        clock: int,
        flush: bool,
        rule: StallRule | None = None,
        share: float = 0.0,
    ) -> SpanRows | None:
        """Apply due observations; return the queues that moved in the spans that are over, as ``queue_spans`` does.

        Called once per batch: after its groups or, if an evaluation lies between the two values of the clock, before
        them, with the rule of evaluations; their histories remain those of before.
        """
        over = bool(span_ms) and before is not None and before // span_ms < clock // span_ms
        closes = (over or flush or self._deletions or len(self._deleted.rows)) and len(self._decoded())
        look = None if rule is None or self._is_empty() else Look(rule, clock, share)
        if not (len(self._due.times) or len(self._due_ends.times) or closes or look):
            return None
        table = self._decoded()
        self._before = None if look is None else table.frozen()
        reach = Reach.of_all(len(table), span_ms, before, clock, flush=flush)
        applied = apply_with_deletions(
            table,
            self._due,
            self._due_rows,
            self._due_ends,
            reach,
            deletions_of_rows(table, self._deletions, self._deleted),
            span_ms=span_ms,
            look=look,
        )
        self._has_changed = True
        if look is not None:
            found = evaluated(applied.standstills, look.rule, before, clock)
            self.standing = StandingQueues(table, found, stalled_rows(found, look.rule, before, clock))
            self.near = NearQueues(table, applied.near)
        return applied.spans

    def groups_to_see(self) -> UInt64:
        """Return the groups with commits that went back or begin, or with queues near the start of their log."""
        near = self.near.groups()
        return near if self._falls is NO_FALLS else np.append(groups_of(self._decoded(), self._falls), near)

    def falls_of(self, group: int) -> list[QueueFall]:
        """Return which commits of a group went back in this batch, by time; queues without a name are left out."""
        return named_falls(self._decoded(), self._falls, group, self._deleted, self._deletions.get(group, ()))

    @property
    def table(self) -> QueueTable:
        """Return the applied observations."""
        return self._decoded()

    # ---- one group

    def of(self, group: int) -> Mapping[int, list[int]]:
        """Return when a group committed, by queue: the last time before this batch, then the due times, ascending."""
        if self._is_empty():
            return {}
        table = self._unapplied()
        rows = table.rows_of(group)
        due = self._due_of(rows)
        has_history = table.applied[rows] & (table.columns["times"][rows] != UNKNOWN)
        has_history[self._due_rows[due][self._due.commits[due]] - rows.start] = True
        return QueueHistories(table, rows, has_history, self._commits_of)

    def _commits_of(self, row: int) -> list[int]:
        table, due = self._unapplied(), self._due_of(slice(row, row + 1))
        before = int(table.columns["times"][row]) if table.applied[row] else UNKNOWN
        times = self._due.times[due][self._due.commits[due]]
        return [*([] if before == UNKNOWN else [before]), *times[times > before].tolist()]

    def offsets_of(self, group: int) -> Offsets:
        """Return the offsets of each queue of a group: those from before this batch, and those that are due."""
        if self._is_empty():
            return ReadOffsets()
        table = self._unapplied()
        rows = table.rows_of(group)
        has_history = table.applied[rows].copy()
        deleted = self._deleted.rows
        for some in (self._due_rows[self._due_of(rows)], deleted, self._matched_ends(rows)[0]):
            has_history[some[(some >= rows.start) & (some < rows.stop)] - rows.start] = True
        deletions: dict[int, list[int]] = {}
        for row, at in zip(deleted.tolist(), self._deleted.times.tolist(), strict=True):
            deletions.setdefault(row, []).append(at)
        return OffsetHistories(table, rows, has_history, self._observations_of, self._newest_of, deletions)

    def _observations_of(self, row: int) -> list[Observation]:
        return self._with_due(self._observed_beside(row), self._due_of(slice(row, row + 1)))

    def _newest_of(self, row: int, until: int) -> Newest:
        some, due = self._due_of(slice(row, row + 1)), self._due
        # If there are many commits and nothing else among them, the last ones suffice.
        beside = self._observed_beside(row)
        if some.stop - some.start > 2 * _LAST_ROWS:
            stop = some.start + int(due.times[some].searchsorted(until, side="right"))
            first = min(stop - _LAST_ROWS, some.start + place_of_earlier(due.times[some.start : stop]))
            if first > some.start and self._due_are_commits and not (beside and _overlaps(beside, due, some)):
                some = slice(first, stop)
        return newest_of(self._with_due(beside, some), until)

    def _observed_beside(self, row: int) -> list[Observation]:
        """Return the observations of a row besides the due ones, in the order of time."""
        table = self._unapplied()
        found = observations_of(table, row) if table.applied[row] else []
        deleted_at = self._deleted.times[self._deleted.rows == row]
        found += [(at, DELETED, UNKNOWN, UNKNOWN) for at in deleted_at.tolist()]
        for number in self._matched_ends(slice(row, row + 1))[1].tolist():
            time, end, start = (int(column[number]) for column in self._due_ends[1:])
            found.append((time, UNKNOWN, end, UNKNOWN if start == UNKNOWN else log_start(start)))
        return sorted(found)

    def _with_due(self, found: list[Observation], some: slice) -> list[Observation]:
        """Return observations and due rows of the same queue in the order of time."""
        due = self._due
        times, offsets, commits = due.times[some], due.offsets[some], due.commits[some]
        if commits.all():
            committed = np.where(offsets == UNKNOWN, NOT_NAMED, offsets).tolist()
        else:
            pairs = zip(offsets.tolist(), commits.tolist(), strict=True)
            committed = [
                committed_or_unnamed(offset) if is_commit else undated_or_unknown(offset) for offset, is_commit in pairs
            ]
        observed = zip(times.tolist(), committed, due.ends[some].tolist(), due.positions[some].tolist(), strict=True)
        # Due rows are already in the order of time.
        if found and _overlaps(found, due, some):
            return sorted({*found, *observed})
        return [*found, *observed]

    def waiting_of(self, group: int) -> list[Waiting]:
        """Return the waiting observations of a group, sorted."""
        mine = self._waiting.where(self._waiting.groups == np.uint64(group))
        return sorted(zip(*(column.tolist() for column in mine[1:]), strict=True))

    def rows_of(self, group: int) -> tuple[NamedGroup | None, list[QueueRow]]:
        """Return a group's name and system, and its applied observations."""
        table = self._decoded()
        rows = table.rows_of(group)
        return table.names.get(group), [table.row(number) for number in range(rows.start, rows.stop)]

    def others(self, groups: UInt64) -> list[int]:
        """Return the keys of all groups but these."""
        present = np.concatenate([self._decoded().groups, self._waiting.groups])
        return sorted(set(present[~np.isin(present, groups)].tolist()))

    def waiting_ends(self) -> list[tuple[int, ...]]:
        """Return the waiting end offsets: queue, time, end, start of the log."""
        return sorted(zip(*(column.tolist() for column in self._waiting_ends), strict=True))

    # ---- restoring another state

    def restore(
        self, group: int, named: NamedGroup | None, rows: Sequence[QueueRow], waiting: Sequence[Waiting]
    ) -> None:
        """Restore another state's knowledge of a group."""
        if rows:
            self._decoded().put(group, named, {row.queue: row for row in rows})
            self._has_new_queues = self._has_changed = True
        if waiting:
            self.add(waiting_columns(group, waiting))

    # ---- the state

    def encode(self, forget_before: int | None) -> tuple[Buffer, ...]:
        """Encode applied and waiting observations, without queues of old and of deleted groups."""
        if self._has_changed or self._has_new_queues:
            table = self._decoded()
            columns = table.columns
            last = np.where(columns["times"] != UNKNOWN, columns["times"], columns["end_times"])
            kept = ~table.applied | (last == UNKNOWN) | (last >= (forget_before or 0))
            kept &= ~is_ended(table) | table.moved
            # Waiting rows belong to the next group of that name, or to a silent one; their names are known already.
            waiting = table.find(self._waiting.groups, self._waiting.queues)
            kept[waiting[waiting >= 0]] = True
            if not kept.all():
                table.keep(kept)
                self._has_new_queues = True
            self._data = [
                table.encode_queues() if self._has_new_queues else self._data[0],
                table.encode_offsets(),
                table.encode_motion(),
                table.encode_starts(),
            ]
        if self._waiting_changed:
            self._waiting_data = pack_waiting(self._waiting)
        if self._ends_changed:
            self._ends_data = self._waiting_ends.encode()
        return self._data[0], self._data[1], self._waiting_data, self._ends_data, *self._data[2:]

    def _decoded(self) -> QueueTable:
        if self._table is None:
            self._table = QueueTable(*self._data)
        return self._table

    def _unapplied(self) -> QueueTable:
        """Return the table without the due observations."""
        return self._decoded() if self._before is None else self._before

    def _is_empty(self) -> bool:
        return not len(self._data[0] if self._table is None else self._table)

    def _due_of(self, rows: slice) -> slice:
        """Return the indexes, among due observations, of those of some rows."""
        return slice(*self._due_rows.searchsorted((rows.start, rows.stop)).tolist())

    def _matched_ends(self, rows: slice) -> tuple[Int64, Int64]:
        """Return the due ends of some rows: row, index of the end."""
        if self._matched is None:
            matched, numbers = match_ends(self._unapplied(), self._due, self._due_rows, self._due_ends)
            order = np.argsort(matched, kind="stable")
            self._matched = matched[order], numbers[order]
        matched, numbers = self._matched
        first, last = np.searchsorted(matched, [rows.start, rows.stop]).tolist()
        return matched[first:last], numbers[first:last]


def _are_mere_commits(due: ProgressColumns) -> bool:
    return bool(due.commits.all() and (due.ends == UNKNOWN).all() and (due.positions == UNKNOWN).all())


def _overlaps(found: Sequence[Observation], due: ProgressColumns, some: slice) -> bool:
    """Return whether any of these observations is not older than all due rows of its queue."""
    return some.stop > some.start and found[-1][0] >= int(due.times[some.start])
