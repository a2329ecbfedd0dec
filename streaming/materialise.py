"""Shell: makes the tables of spans and of the present follow the journal, each exactly once.

Each table is marked, in the commit that changes it, with the version of ``changes`` that it has reached; a table that
a piece of the journal does not concern gets its mark in the commit of one that it does concern. Tables go forward
together: whichever lags after a crash catches up first, so that all start the next piece from the same version.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from streaming.delta_actions import Mark
from streaming.delta_files import DeltaFiles, Replacement, Standing
from streaming.net_effect import EFFECTS, Effect, Entry, Group, Rows
from streaming.table_error import TableError
from streaming.tables import CHANGES, GROUP_MINUTES, GROUPS, Row, from_arrow, from_arrow_columns, to_arrow
from udfs import journal

# So many changes are laid over the tables at once; more are taken in turn, group by group, into one commit.
CHANGES_AT_ONCE = 100_000
# Of the interval: so much before its end it is done, because doing it takes time too.
_BEFORE_THE_END = 0.2

_ENTRY_COLUMNS = ("cluster", "group_id", "subject", "number", "kind", "event_time", "body")

_body = msgspec.json.Decoder(journal.Body)


class Piece(NamedTuple):
    """The journal after one version up to another: files in the order of the log."""

    after: int
    upto: int
    files: tuple[tuple[int, str], ...]


class _OvertakenError(Exception):
    """Another process has followed the journal meanwhile."""


class Materialiser:
    """Follows the journal: at once, or at most one interval after it.

    Args:
        root: Root folder of the tables; those that are missing are made.
        interval_ms: 0 = with each batch, in the batch's own thread.
    """

    def __init__(self, root: Path, interval_ms: int) -> None:
        self._interval = interval_ms / 1_000
        self._journal = DeltaFiles(root, CHANGES)
        self._tables = {effect.table.name: DeltaFiles(root, effect.table) for effect in EFFECTS}
        self._reached: dict[str, int] | None = None
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
        """Hear that the journal has grown.

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
        """Answer whether changes have waited as long as they may."""
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
        """Go forward by one piece; answer whether that was the last."""
        reached = self._marks() if self._reached is None else self._reached
        # Should anything go wrong, what the tables say counts, not what this process remembers.
        self._reached = None
        lowest = min(reached.values())
        if lowest < end:
            upto = min((version for version in reached.values() if version > lowest), default=end)
            lagging = [effect for effect in EFFECTS if reached[effect.table.name] == lowest]
            try:
                self._advance(self._piece(lowest, upto), lagging)
            except _OvertakenError:
                return False
            reached |= {effect.table.name: upto for effect in lagging}
        self._reached = reached
        return min(reached.values()) >= end

    def reached(self) -> dict[str, int]:
        """Answer, for each table, the version of ``changes`` that it has reached."""
        for table in self._tables.values():
            table.refresh()
        return self._marks()

    def _marks(self) -> dict[str, int]:
        for table in self._tables.values():
            table.refresh()
        return {
            name: max(table.mark(self._app_id(name)) or 0 for table in self._tables.values()) for name in self._tables
        }

    def _app_id(self, name: str) -> str:
        """Answer under which id a table's progress is marked: a journal made anew is another journal."""
        return f"{self._journal.identity}-{name}"

    def _piece(self, after: int, upto: int) -> Piece:
        try:
            added = self._journal.added_after(after)
        except FileNotFoundError as error:
            if after:
                raise TableError(
                    f"{self._journal.folder}: its log no longer goes back to version {after}, from which tables must"
                    " follow it. Delete the folders of all tables but rebalances, rejected_events and changes: they are"
                    " then made anew from what the journal still holds."
                ) from error
            # Tables made anew begin with all that is still there.
            paths = self._journal.files().listing["path"].to_pylist()
            added = [(upto, path) for path in sorted(paths)]
        return Piece(after, upto, tuple((version, path) for version, path in added if version <= upto))

    def _advance(self, piece: Piece, effects: Sequence[Effect]) -> None:
        sizes = _histories(self._journal, piece)
        concerned = {
            effect.table.name
            for effect in effects
            if any(effect.concerns(kind, group_id) for kind, group_id in _concerns(self._journal, piece))
        }
        idle = [effect.table.name for effect in effects if effect.table.name not in concerned]
        for effect in effects:
            name = effect.table.name
            if name not in concerned:
                continue

            def compute(effect: Effect = effect) -> Replacement:
                if (self._tables[effect.table.name].mark(self._app_id(effect.table.name)) or 0) > piece.after:
                    raise _OvertakenError
                return self._replacement(piece, effect, sizes)

            also = [Mark(self._app_id(other), piece.upto) for other in idle]
            self._tables[name].replace(compute, Mark(self._app_id(name), piece.upto), also)
            idle.append(name)

    def _replacement(self, piece: Piece, effect: Effect, sizes: list[tuple[Group, int]]) -> Replacement:
        table = self._tables[effect.table.name]
        going: list[Standing] = []
        coming: list[Row] = []
        for first, last in _shares(sizes, CHANGES_AT_ONCE):
            entries = _entries(self._journal, piece, effect, first, last)
            if not entries:
                continue
            question = effect.question(entries)
            standing = table.standing(question.bounds, question.wanted, some_null=question.some_null)
            rows = Rows(from_arrow(effect.table, standing.rows))
            effect.lay_over(entries, rows, self._present(effect, entries))
            indexes, new = rows.outcome(effect.table.names)
            taken = standing.rows.take(pa.array(indexes, pa.int64()))
            going.append(Standing(taken, [standing.places[index] for index in indexes]))
            coming += new
        empty = effect.table.schema.empty_table()
        return Replacement(
            Standing(
                pa.concat_tables([empty, *(each.rows for each in going)]), [p for each in going for p in each.places]
            ),
            to_arrow(effect.table, coming),
        )

    def _present(self, effect: Effect, entries: Sequence[Entry]) -> dict[Group, Row]:
        """Answer the groups as they stood before; only the minutes ask."""
        if effect.table is not GROUP_MINUTES:
            return {}
        groups = self._tables[GROUPS.name]
        groups.refresh()
        question = next(each for each in EFFECTS if each.table is GROUPS).question(entries)
        standing = groups.standing(question.bounds, question.wanted)
        return {(row["cluster"], row["group_id"]): row for row in from_arrow(GROUPS, standing.rows)}


def _histories(changes: DeltaFiles, piece: Piece) -> list[tuple[Group, int]]:
    """Answer how many changes the piece holds of each group (or of each cluster beside its groups), in order."""
    names = ["cluster", "group_id"]
    columns = [changes.read(path, names) for _, path in piece.files]
    if not columns:
        return []
    counted = pa.concat_tables(columns).group_by(names).aggregate([([], "count_all")]).to_pylist()
    groups = [((row["cluster"], row["group_id"]), row["count_all"]) for row in counted]
    return sorted(groups, key=lambda each: _order(each[0]))


def _order(group: Group) -> tuple[str, str]:
    return group[0], group[1] or ""


def _concerns(changes: DeltaFiles, piece: Piece) -> set[tuple[str, str | None]]:
    found: set[tuple[str, str | None]] = set()
    for _, path in piece.files:
        columns = changes.read(path, ["kind", "group_id"])
        # That it is of some group is all that matters.
        of_group = pc.is_valid(columns["group_id"])
        distinct = (
            pa.table({"kind": columns["kind"], "of_group": of_group}).group_by(["kind", "of_group"]).aggregate([])
        )
        found |= {(row["kind"], "some" if row["of_group"] else None) for row in distinct.to_pylist()}
    return found


def _shares(sizes: list[tuple[Group, int]], limit: int) -> Iterator[tuple[Group, Group]]:
    """Cut the groups, in order, into runs of about so many changes; answer first and last of each."""
    start, held = 0, 0
    for index, (_, size) in enumerate(sizes):
        held += size
        if held >= limit or index == len(sizes) - 1:
            yield sizes[start][0], sizes[index][0]
            start, held = index + 1, 0


def _entries(changes: DeltaFiles, piece: Piece, effect: Effect, first: Group, last: Group) -> list[Entry]:
    """Answer the changes of these groups that the effect asks for, in the order of their histories."""
    keep = _between(_order(first), _order(last)) & effect.rows_wanted()
    parts = [_of_version(changes.read(path, _ENTRY_COLUMNS).filter(keep), version) for version, path in piece.files]
    # Numbers begin anew with a new checkpoint, so the journal's own order goes first.
    history = [(name, "ascending") for name in ("cluster", "group_id", "subject", "_version", "number")]
    rows = pa.concat_tables(parts).sort_by(history)
    columns = from_arrow_columns(rows, ["cluster", "group_id", "event_time", "kind", "body"])
    return [
        Entry(cluster, group_id, event_time, _body.decode(body) if effect.reads(kind) else None)
        for cluster, group_id, event_time, kind, body in zip(*columns, strict=True)
    ]


def _of_version(rows: pa.Table, version: int) -> pa.Table:
    return rows.append_column("_version", pa.repeat(pa.scalar(version, pa.int64()), rows.num_rows))


def _between(low: tuple[str, str], high: tuple[str, str]) -> pc.Expression:
    cluster, group = pc.field("cluster"), pc.coalesce(pc.field("group_id"), pc.scalar(""))
    after = (cluster > low[0]) | ((cluster == low[0]) & (group >= low[1]))
    before = (cluster < high[0]) | ((cluster == high[0]) & (group <= high[1]))
    return after & before
