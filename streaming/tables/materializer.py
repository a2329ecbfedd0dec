"""Shell: makes the tables of spans and of the current state follow the journal, each exactly once.

Each commit is marked with its table's progress (`journal_progress.py`). The tables advance together, share by share.
Within a share the table that is written last waits for all others, and its mark says that the share is done; a table
that the share does not concern gets no commit. After a crash the highest mark of any table shows where to resume, and
the tables whose own marks belong to that share have it already.

``CHANGES_AT_ONCE`` bounds the memory, however much waits in the journal: a piece is as many versions as hold this many
changes, and a version that holds more is divided into shares, each with some groups and their whole history in it, and
with commits of its own.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

from streaming.settings.locations import Location
from streaming.stores.locks import Guard
from streaming.tables.engine import DeltaRsEngine, Engine
from streaming.tables.errors import TableError
from streaming.tables.journal_piece import JournalPiece
from streaming.tables.journal_progress import JournalProgress, from_mark, to_mark
from streaming.tables.projections import PROJECTIONS, Projection
from streaming.tables.projector import Replaced
from streaming.tables.schema import CHANGES, GROUP_MINUTES, GROUPS, MEMBERS
from streaming.tables.writer import LogTruncatedError, Mark, TableWriter

# This many changes are applied to the tables at once. After a crash within a large version, the same division is used.
CHANGES_AT_ONCE = 100_000
# A piece has at most this many versions of the journal, because the rows of all are counted first.
VERSIONS_AT_ONCE = 1_000
# Up to this size of a piece, tables are written concurrently; for a larger one, only one table's rows are in memory.
_SMALL_PIECE = 10_000
# The table that waits for all others should be quick: new members are merely appended. `group_minutes` reads
# `groups` as they were before the share.
_AT_THE_END = {GROUPS.name: 1, MEMBERS.name: 2}
# The work begins this share of the interval before its end, because it takes time as well.
_BEFORE_THE_END = 0.2
# The niceness of its thread; the job's own is 0. Measured while 302,000 rows of a new fleet were written to the tables:
# batches of heartbeats took 1.09 times as long as before (1.56 with 0), the tables 1.1 times as long.
_NICENESS = 10

_Step: TypeAlias = tuple[Projection, Mark]


class _OvertakenError(Exception):
    """Another process has followed the journal in the meantime."""


class Materializer:
    """Follows the journal, at once or at most one interval after it.

    Args:
        interval_ms: 0 to follow with each batch, in the batch's own thread.
        listener: Follows the rows of the tables; starts over if another process has changed them in the meantime.
        engine: The engine that writes the tables; None for delta-rs.
        guard: Called before tables are written; raises an error if another job may write instead.
    """

    def __init__(
        self,
        root: Location,
        interval_ms: int,
        listener: Replaced | None = None,
        *,
        engine: Engine | None = None,
        guard: Guard = lambda: None,
    ) -> None:
        engine = engine or DeltaRsEngine()
        self._interval = interval_ms / 1_000
        self._listener = listener
        self._guard = guard
        self._journal: TableWriter = engine.table(root, CHANGES)
        self._tables = {projection.table.name: engine.table(root, projection.table) for projection in PROJECTIONS}
        self._projector = engine.projector(self._journal, self._tables, listener)
        # Progress is marked under this id; a recreated journal has another one.
        self._app_id = progress_id(self._journal.identity)
        self._progress: JournalProgress | None = None
        # For each table, when the progress was read: whether it had its part of a share that was begun.
        self._marks: dict[str, int] = {}
        self._working = threading.Lock()
        self._waiting = threading.Condition()
        self._due: float | None = None
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None

    @property
    def root(self) -> Location:
        """Return the folder or URI of the tables."""
        return self._journal.root

    # -- scheduling ---------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Catch up with the journal, and keep following it."""
        self.run()
        if self._interval and self._thread is None:
            self._thread = threading.Thread(target=self._follow, name="materialise", daemon=True)
            self._thread.start()

    def notice(self) -> None:
        """Signal that the journal has grown.

        Raises:
            Exception: Any error that made following fail since the last call.
        """
        self._raise_failure()
        if not self._interval:
            self.run()
            return
        with self._waiting:
            if self._due is None:
                self._due = time.monotonic() + self._interval * (1 - _BEFORE_THE_END)
                self._waiting.notify_all()

    def due(self) -> bool:
        """Return whether changes have waited as long as they may."""
        return self._due is not None and time.monotonic() >= self._due

    def run_if_due(self) -> None:
        """Follow the journal if it is time."""
        self._raise_failure()
        if self.due():
            self.run()

    def wait_until_idle(self, timeout: float) -> bool:
        """Wait until nothing is left to follow, or following failed; return False after the timeout."""
        with self._waiting:
            return self._waiting.wait_for(lambda: self._failure is not None or self._idle(), timeout)

    def _idle(self) -> bool:
        return self._due is None and not self._working.locked()

    def stop(self) -> None:
        """Follow the journal to its end and stop."""
        with self._waiting:
            self._stopping = True
            self._waiting.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._raise_failure()
        self.run()

    def _follow(self) -> None:
        _run_behind_batches()
        while True:
            with self._waiting:
                while not self._stopping and not self.due():
                    self._waiting.wait(None if self._due is None else max(0.0, self._due - time.monotonic()))
                if self._stopping:
                    return
            try:
                self.run()
            except BaseException as failure:  # noqa: BLE001 - handed to the job's own thread, which stops by it
                self._failure = failure
            with self._waiting:
                self._waiting.notify_all()
            if self._failure is not None:
                return

    def _raise_failure(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    # -- following ----------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Follow the journal to its end now."""
        with self._working:
            self._due = None
            end = self._journal.refresh()
            while not self._followed(end):
                pass

    def _followed(self, end: int) -> bool:
        """Advance by one piece or share; return whether that was the last."""
        progress = self._read_progress() if self._progress is None else self._progress
        # After a failure the tables decide, not the memory of this process.
        self._progress = None
        if progress.after < end:
            self._guard()
            try:
                progress = self._advance(self._piece(progress, end), progress)
            except _OvertakenError:
                if self._listener is not None:
                    self._listener.begin(self.root)
                return False
        self._progress = progress
        return progress.after >= end

    def reached(self) -> int:
        """Return the version of ``changes`` that all tables have reached."""
        return self._read_progress().after

    def _read_progress(self) -> JournalProgress:
        for name, table in self._tables.items():
            table.refresh()
            self._marks[name] = table.mark(self._app_id) or 0
        return from_mark(max(self._marks.values()) or None)

    def _piece(self, progress: JournalProgress, end: int) -> JournalPiece:
        """Return the next piece: the one that was begun, or the next to apply at once.

        It is the same piece however often it is requested before it is done.
        """
        after, upto = progress.after, progress.upto or end
        try:
            return self._projector.piece(after, min(upto, after + VERSIONS_AT_ONCE), CHANGES_AT_ONCE)
        except LogTruncatedError as error:
            if after:
                raise TableError(
                    f"The log of {CHANGES.name} no longer goes back to version {after}, from which tables must follow"
                    f" it. Delete the folders {', '.join(sorted(self._tables))}, and no others: these are then"
                    " recreated from what the journal still holds. What it no longer holds is missing in them; keep"
                    " copies of the folders if you need it."
                ) from error
            # Recreated tables begin with everything that is still in the journal.
            return self._projector.snapshot(after, upto)

    def _advance(self, piece: JournalPiece, progress: JournalProgress) -> JournalProgress:
        """Apply a share to the tables that it concerns, side by side, and to the last one once the others have it."""
        shares = self._projector.shares(piece, CHANGES_AT_ONCE)
        begun = JournalProgress(piece.after, piece.upto, progress.share)
        done = begun.share + 1
        end = JournalProgress(piece.upto) if done == len(shares) else begun._replace(share=done)
        changes = self._projector.changes(piece, shares[begun.share])
        steps = self._steps(changes, begun, end)
        applied = itertools.count(1)

        def wait_for_others() -> None:
            for other in others:
                other.result()

        def apply(lane: Sequence[_Step]) -> None:
            for step in lane:
                projection, mark = step
                check = self._check(self._tables[projection.table.name], begun, mark)
                ready = wait_for_others if step is steps[-1] else lambda: None
                self._projector.apply(projection, changes, mark, check, ready)
                self._report(piece, begun.share + next(applied) / len(steps), len(shares))

        with ThreadPoolExecutor(self._projector.tables_at_once if piece.rows <= _SMALL_PIECE else 1) as threads:
            lanes = _lanes(steps)
            others = [threads.submit(apply, lane) for lane in lanes[:-1]]
            last = [threads.submit(apply, lane) for lane in lanes[-1:]]
            for lane in (*others, *last):
                lane.result()
        return end

    def _steps(self, changes: Any, begun: JournalProgress, end: JournalProgress) -> list[_Step]:
        """Return the tables that still need a share, with the marks of their commits; the last one ends the share."""
        concerned = [
            stage for stage, projection in enumerate(PROJECTIONS) if self._projector.is_concerned(projection, changes)
        ]
        concerned.sort(key=lambda stage: _AT_THE_END.get(PROJECTIONS[stage].table.name, 0))
        marks = {stage: to_mark(begun._replace(stage=stage + 1)) for stage in concerned}
        missing = [stage for stage in concerned if self._marks[PROJECTIONS[stage].table.name] < marks[stage]]
        if missing:
            marks[missing[-1]] = to_mark(end)
        return [(PROJECTIONS[stage], Mark(self._app_id, marks[stage])) for stage in missing]

    def _report(self, piece: JournalPiece, applied: float, shares: int) -> None:
        """Report to the listener how far a large piece is applied; shares are about equal."""
        if self._listener is not None and piece.rows > CHANGES_AT_ONCE:
            self._listener.followed(round(piece.rows * applied / shares), piece.rows)

    def _check(self, table: TableWriter, begun: JournalProgress, mark: Mark) -> Callable[[], None]:
        """Return a check that raises once another process has applied a piece to a table that did not exist before."""

        def check() -> None:
            number = table.mark(self._app_id)
            there = from_mark(number)
            is_ahead = number is not None and number >= mark.version
            is_of_another_piece = there.upto > begun.after and there.upto != begun.upto
            if is_ahead or there.after > begun.after or is_of_another_piece:
                raise _OvertakenError

        return check


def _lanes(steps: Sequence[_Step]) -> list[list[_Step]]:
    """Return steps that may run concurrently; `groups` follows `group_minutes`, and the last step is at the end."""
    lanes: dict[str, list[_Step]] = {}
    for step in steps:
        table = step[0].table
        lanes.setdefault((GROUP_MINUTES if table is GROUPS else table).name, []).append(step)
    return sorted(lanes.values(), key=lambda lane: lane[-1] is steps[-1])


def _run_behind_batches() -> None:
    """Lower the priority of this thread below that of batches. Only Linux has priorities for threads."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)


def progress_id(journal: str) -> str:
    """Return the id under which the progress of a journal's tables is marked."""
    return f"{journal}-tables"
