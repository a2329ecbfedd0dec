"""Shell: makes the tables of spans and of the present follow the journal, each exactly once.

Each table is marked, in the commit that changes it, with the version of ``changes`` that it has reached; a table that
a piece of the journal does not concern gets its mark in the commit of one that it does concern. Tables go forward
together: whichever lags after a crash catches up first, so that all start the next piece from the same version.

What is in memory at a time is bounded by ``CHANGES_AT_ONCE``, whatever waits in the journal: a piece is as many
versions as hold so many changes, and a version that holds more is taken in shares, each of some groups with their whole
history in it, and each with commits of its own. A share's mark is the version with the number of the share.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import pyarrow as pa

from streaming.settings.locations import Location
from streaming.tables.arrow_rows import from_arrow, to_arrow
from streaming.tables.delta_rs import DeltaRsTable
from streaming.tables.errors import TableError
from streaming.tables.journal_entries import Entry, Group
from streaming.tables.journal_piece import (
    Piece,
    Share,
    entries_of,
    is_concerned,
    piece_of,
    rows_of,
    shares_of,
    snapshot_of,
)
from streaming.tables.projections import EFFECTS, Projection
from streaming.tables.row_slots import Rows
from streaming.tables.schema import CHANGES, GROUP_MINUTES, GROUPS, Row, Table
from streaming.tables.writer import Edit, LogTruncatedError, Mark, TableWriter

# So many changes are applied to the tables at once. A crash in the midst of a large version is continued by this cut.
CHANGES_AT_ONCE = 100_000
# And so many versions of the journal, for the rows of all are counted first.
VERSIONS_AT_ONCE = 1_000
# A version has fewer shares than this: in a mark they are the lower digits.
SHARES = 1 << 20
# Of the interval: so much before its end it is done, because doing it takes time too.
_BEFORE_THE_END = 0.2


class Position(NamedTuple):
    """How far a table has come: all of the journal up to a version, and so many shares of the piece after it.

    Attributes:
        upto: Where that piece ends; 0 while none of its shares is done.
    """

    version: int
    shares: int = 0
    upto: int = 0


class Replaced(Protocol):
    """Is called with the rows that a commit took out of a table and put into it."""

    def begin(self, tables: Location) -> None: ...
    def replaced(self, table: Table, gone: pa.Table, come: pa.Table) -> None: ...


class _OvertakenError(Exception):
    """Another process has followed the journal meanwhile."""


class Materializer:
    """Follows the journal: at once, or at most one interval after it.

    Args:
        root: Root folder of the tables; those that are missing are made.
        interval_ms: 0 = with each batch, in the batch's own thread.
        listener: Follows the rows of the tables; begins anew when another process has changed them meanwhile.
    """

    def __init__(self, root: Location, interval_ms: int, listener: Replaced | None = None) -> None:
        self._root = root
        self._interval = interval_ms / 1_000
        self._listener = listener
        self._journal: TableWriter = DeltaRsTable(root, CHANGES)
        self._tables: dict[str, TableWriter] = {
            effect.table.name: DeltaRsTable(root, effect.table) for effect in EFFECTS
        }
        self._reached: dict[str, Position] | None = None
        self._cut: tuple[Piece, list[Share | None]] | None = None
        self._working = threading.Lock()
        self._waiting = threading.Condition()
        self._due: float | None = None
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None

    # -- when ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Catch up with the journal, and go on following it."""
        self.run()
        if self._interval and self._thread is None:
            self._thread = threading.Thread(target=self._follow, name="materialise", daemon=True)
            self._thread.start()

    def notice(self) -> None:
        """Note that the journal has grown.

        Raises:
            Exception: Whatever made following fail since the last call.
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
        """Wait until nothing is left to follow, or following failed; False after so many seconds."""
        with self._waiting:
            return self._waiting.wait_for(lambda: self._failure is not None or self._idle(), timeout)

    def _idle(self) -> bool:
        return self._due is None and not self._working.locked()

    def stop(self) -> None:
        """Follow the journal to its end and rest."""
        with self._waiting:
            self._stopping = True
            self._waiting.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._raise_failure()
        self.run()

    def _follow(self) -> None:
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

    # -- what ---------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Follow the journal to its end now."""
        with self._working:
            self._due = None
            end = self._journal.refresh()
            while not self._followed(end):
                pass

    def _followed(self, end: int) -> bool:
        """Go forward by one piece or share; return whether that was the last."""
        reached = self._positions() if self._reached is None else self._reached
        # Should anything go wrong, what the tables say counts, not what this process remembers.
        self._reached = None
        lowest = min(reached.values(), key=_order_of)
        if lowest.version < end:
            lagging = [effect for effect in EFFECTS if _order_of(reached[effect.table.name]) == _order_of(lowest)]
            piece = self._piece(lowest, reached.values(), end)
            shares = self._shares(piece)
            done = lowest.shares + 1
            now = Position(piece.upto) if done == len(shares) else Position(piece.after, done, piece.upto)
            try:
                self._advance(piece, shares[lowest.shares], now, lagging)
            except _OvertakenError:
                if self._listener is not None:
                    self._listener.begin(self._root)
                return False
            reached |= {effect.table.name: now for effect in lagging}
        self._reached = reached
        return min(position.version for position in reached.values()) >= end

    def reached(self) -> dict[str, int]:
        """Return, for each table, the version of ``changes`` that it has reached."""
        return {name: position.version for name, position in self._positions().items()}

    def _positions(self) -> dict[str, Position]:
        for table in self._tables.values():
            table.refresh()
        return {name: self._position(self._app_id(name)) for name in self._tables}

    def _position(self, app_id: str) -> Position:
        version, shares = (
            max(table.mark(each) or 0 for table in self._tables.values()) for each in (app_id, of_shares(app_id))
        )
        upto, done = divmod(shares, SHARES)
        return Position(version, done, upto) if upto > version else Position(version)

    def _app_id(self, name: str) -> str:
        """Return under which id a table's progress is marked: a journal made anew is another journal."""
        return f"{self._journal.identity}-{name}"

    def _piece(self, lowest: Position, reached: Iterable[Position], end: int) -> Piece:
        """Return what comes after the lowest position: the piece that others have begun, or what is taken at once.

        It is the same piece however often it is asked for before it is done.
        """
        after = lowest.version
        begun = [each.upto for each in reached if each.version == after and each.upto]
        upto = min([*begun, *(each.version for each in reached if each.version > after), end])
        try:
            piece = piece_of(self._journal, after, min(upto, after + VERSIONS_AT_ONCE), CHANGES_AT_ONCE)
        except LogTruncatedError as error:
            if after:
                raise TableError(
                    f"The log of {CHANGES.name} no longer goes back to version {after}, from which tables must follow"
                    " it. Delete the folders of all tables but rebalances, rejected_events and changes: they are"
                    " then made anew from what the journal still holds."
                ) from error
            # Tables made anew begin with all that is still there.
            return snapshot_of(self._journal, after, upto)
        return piece

    def _shares(self, piece: Piece) -> list[Share | None]:
        if self._cut is None or self._cut[0] != piece:
            self._cut = piece, shares_of(self._journal, piece, CHANGES_AT_ONCE)
        return self._cut[1]

    def _advance(self, piece: Piece, share: Share | None, to: Position, lagging: Sequence[Projection]) -> None:
        """Apply a share to the tables that it concerns; the others' marks ride in their commits."""
        changes = rows_of(self._journal, piece, share)
        marks = {effect.table.name: self._mark(effect.table.name, to) for effect in lagging}
        concerned = [effect for effect in lagging if is_concerned(effect, changes)]
        idle = [marks[effect.table.name] for effect in lagging if effect not in concerned]
        for effect in concerned:
            mark = marks[effect.table.name]
            self._replace(piece.after, effect, entries_of(changes, effect), mark, idle)
            idle.append(mark)

    def _mark(self, name: str, position: Position) -> Mark:
        app_id = self._app_id(name)
        if not position.upto:
            return Mark(app_id, position.version)
        return Mark(of_shares(app_id), position.upto * SHARES + position.shares)

    def _replace(
        self, after: int, effect: Projection, entries: Sequence[Entry], mark: Mark, also: Sequence[Mark]
    ) -> None:
        table = self._tables[effect.table.name]
        edit: Edit | None = None

        def compute() -> Edit:
            nonlocal edit
            if (table.mark(self._app_id(effect.table.name)) or 0) > after:
                raise _OvertakenError
            edit = self._edit(effect, entries)
            return edit

        is_done = table.merge(compute, mark, also)
        if edit is None:
            # The mark was there already.
            raise _OvertakenError
        if is_done and self._listener is not None:
            self._listener.replaced(effect.table, edit.removed, edit.added)

    def _edit(self, effect: Projection, entries: Sequence[Entry]) -> Edit:
        standing = self._tables[effect.table.name].read(effect.question(entries))
        rows = Rows(from_arrow(effect.table, standing))
        effect.apply_changes(entries, rows, self._present(effect, entries))
        indexes, new = rows.outcome(effect.table.names)
        return Edit(standing.take(pa.array(indexes, pa.int64())), to_arrow(effect.table, new))

    def _present(self, effect: Projection, entries: Sequence[Entry]) -> dict[Group, Row]:
        """Return the groups as they stood before; only the minutes ask."""
        if effect.table is not GROUP_MINUTES:
            return {}
        groups = self._tables[GROUPS.name]
        groups.refresh()
        standing = groups.read(next(each for each in EFFECTS if each.table is GROUPS).question(entries))
        return {(row["cluster"], row["group_id"]): row for row in from_arrow(GROUPS, standing)}


def _order_of(position: Position) -> tuple[int, int]:
    return position.version, position.shares


def of_shares(app_id: str) -> str:
    """Return under which id the shares of a piece are marked."""
    return f"{app_id}-share"
