"""Shell: pieces of the journal: how much is applied to the tables at a time, and how it is divided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.tables.arrow_rows import from_arrow_columns
from streaming.tables.journal_entries import Entry
from streaming.tables.projections import MINUTE_MS, Projection
from streaming.tables.schema import CHANGES
from streaming.tables.writer import COMMIT_VERSION, TableWriter
from udfs.model import journal
from udfs.model.garbage_collection import makes_no_cycles

ENTRY_COLUMNS = ("cluster", "group_id", "subject", "number", "kind", "event_time", "body")
_OF_ENTRY = ["cluster", "group_id", "event_time"]
_HISTORY = ("cluster", "group_id", "subject", COMMIT_VERSION, "number")

_body = msgspec.json.Decoder(journal.Body)


class JournalPiece(NamedTuple):
    """The journal after one version up to another.

    Attributes:
        rows: The number of its rows.
        is_snapshot: Whether it is everything that the journal holds at that version; the log no longer shows which
            commits brought its rows.
    """

    after: int
    upto: int
    rows: int
    is_snapshot: bool = False

    def read(self, changes: TableWriter, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read its rows, with the version that brought each."""
        if self.is_snapshot:
            return changes.rows_at(self.upto, columns)
        return changes.appended(self.after, self.upto, columns)


# A share runs from its first to its last group, each with its cluster, in the order of ``_between``.
Share: TypeAlias = tuple[tuple[str, str], tuple[str, str]]


def piece_of(changes: TableWriter, after: int, upto: int, limit: int) -> JournalPiece:
    """Return the piece after a version: as many versions as hold about this many changes, and at least one.

    Raises:
        LogTruncatedError: The log no longer reaches back that far.
    """
    counts: Counter[int] = Counter()
    for batch in changes.appended(after, upto, ["kind"]):
        counts.update(dict(_counted(batch[COMMIT_VERSION])))
    held = 0
    for index, version in enumerate(versions := sorted(counts)):
        if held and held + counts[version] > limit:
            return JournalPiece(after, versions[index - 1], held)
        held += counts[version]
    return JournalPiece(after, upto, held)


def snapshot_of(changes: TableWriter, after: int, upto: int) -> JournalPiece:
    """Return everything that the journal holds at a version as one piece."""
    return JournalPiece(after, upto, sum(batch.num_rows for batch in changes.rows_at(upto, ["kind"])), is_snapshot=True)


def _counted(versions: pa.Array) -> Iterator[tuple[int, int]]:
    for version in pc.value_counts(versions).to_pylist():
        yield version["values"], version["counts"]


def shares_of(changes: TableWriter, piece: JournalPiece, limit: int) -> list[Share | None]:
    """Divide the groups of a piece (and entries of a cluster itself), in order, into runs of about as many changes.

    Returns:
        None for all groups.
    """
    if piece.rows <= limit:
        return [None]
    names = ["cluster", "group_id"]
    empty = pa.schema([*(CHANGES.schema.field(name) for name in names), ("rows", pa.int64())]).empty_table()
    parts = [pa.Table.from_batches([batch]) for batch in piece.read(changes, names)]
    counted = pa.concat_tables([empty, *(_of_groups(part, names) for part in parts)])
    counted = counted.group_by(names).aggregate([("rows", "sum")])
    keys = counted.set_column(1, "group_id", pc.fill_null(counted["group_id"], "")).sort_by(
        [(name, "ascending") for name in names]
    )
    upto = np.cumsum(keys["rows_sum"].to_numpy())
    found: list[Share | None] = []
    start = 0
    while start < keys.num_rows:
        held = upto[start - 1] if start else 0
        last = min(int(np.searchsorted(upto, held + limit)), keys.num_rows - 1)
        first_key, last_key = ((keys["cluster"][at].as_py(), keys["group_id"][at].as_py()) for at in (start, last))
        found.append((first_key, last_key))
        start = last + 1
    return found


def _of_groups(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    return rows.group_by(names).aggregate([([], "count_all")]).rename_columns([*names, "rows"])


def rows_of(changes: TableWriter, piece: JournalPiece, share: Share | None) -> pa.Table:
    """Return the changes of a share's groups, in the order of their histories."""
    parts = (pa.Table.from_batches([batch]) for batch in piece.read(changes, ENTRY_COLUMNS))
    return in_order(_together(part if share is None else part.filter(_between(*share)) for part in parts))


def rows_if_few(changes: TableWriter, after: int, upto: int, limit: int) -> pa.Table | None:
    """Return all changes after a version up to another, in the order of their histories; None if there are more.

    Raises:
        LogTruncatedError: The log no longer reaches back that far.
    """
    parts, held = [], 0
    for batch in changes.appended(after, upto, ENTRY_COLUMNS):
        held += batch.num_rows
        if held > limit:
            return None
        parts.append(pa.Table.from_batches([batch]))
    return in_order(_together(parts))


def _together(parts: Iterable[pa.Table]) -> pa.Table:
    schema = pa.schema([*(CHANGES.schema.field(name) for name in ENTRY_COLUMNS), (COMMIT_VERSION, pa.int64())])
    return pa.concat_tables([schema.empty_table(), *parts])


def in_order(rows: pa.Table) -> pa.Table:
    """Return changes in the order of their histories."""
    # Numbers restart with a new checkpoint, so the journal's own order takes precedence.
    return rows.sort_by([(name, "ascending") for name in _HISTORY])


def is_concerned(projection: Projection, rows: pa.Table) -> bool:
    """Return whether any of these changes touch the projection's table."""
    if projection.every_change:
        return bool(rows["group_id"].null_count < rows.num_rows)
    return bool(pc.any(pc.is_in(rows["kind"], pa.array(sorted(projection.kinds)))).as_py())


@makes_no_cycles
def entries_of(rows: pa.Table, projection: Projection) -> list[Entry]:
    """Return the changes that a projection needs."""
    if projection.every_change:
        rows = rows.filter(pc.is_valid(rows["group_id"]))
    wanted = is_read = pc.is_in(rows["kind"], pa.array(sorted(projection.kinds)))
    if projection.every_change:
        wanted = pc.or_(is_read, _begins_minute(rows))
    bodies = pc.if_else(is_read, rows["body"], None)
    needed = pa.table([*rows.select(_OF_ENTRY).columns, bodies], [*_OF_ENTRY, "body"]).filter(wanted)
    return [
        Entry(cluster, group_id, event_time, None if body is None else _body.decode(body))
        for cluster, group_id, event_time, body in zip(*from_arrow_columns(needed, needed.column_names), strict=True)
    ]


def _begins_minute(rows: pa.Table) -> pa.Array:
    """Return which changes of groups, in the order of their histories, do not continue a minute of their group."""
    minutes = rows["event_time"].cast(pa.int64()).to_numpy() // (MINUTE_MS * 1_000)
    continues = np.zeros(rows.num_rows, dtype=np.bool_)
    continues[1:] = minutes[1:] == minutes[:-1]
    for name in ("cluster", "group_id"):
        continues[1:] &= pc.equal(rows[name][1:], rows[name][:-1]).to_numpy()
    return pa.array(~continues)


def _between(low: tuple[str, str], high: tuple[str, str]) -> pc.Expression:
    cluster, group = pc.field("cluster"), pc.coalesce(pc.field("group_id"), pc.scalar(""))
    after = (cluster > low[0]) | ((cluster == low[0]) & (group >= low[1]))
    before = (cluster < high[0]) | ((cluster == high[0]) & (group <= high[1]))
    return after & before
