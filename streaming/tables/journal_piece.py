"""Shell: pieces of the journal: what of it is applied to the tables at a time, and cut how."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.tables.arrow_rows import from_arrow_columns
from streaming.tables.delta_files import DeltaFiles
from streaming.tables.journal_entries import Entry
from streaming.tables.projections import Projection
from streaming.tables.schema import CHANGES
from udfs.model import journal

_ENTRY_COLUMNS = ("cluster", "group_id", "subject", "number", "kind", "event_time", "body")

_body = msgspec.json.Decoder(journal.Body)


class Piece(NamedTuple):
    """The journal after one version up to another: files in the order of the log."""

    after: int
    upto: int
    files: tuple[tuple[int, str], ...]


# First and last group of a share, each with its cluster, in the order of ``_between``.
Share: TypeAlias = tuple[tuple[str, str], tuple[str, str]]


# Kinds of change, each with some group's id or None: whether it is of a group is all that matters.
Kinds: TypeAlias = set[tuple[str, str | None]]


def shares_of(changes: DeltaFiles, piece: Piece, limit: int) -> list[Share]:
    """Cut the groups of a piece (and what is of a cluster alone), in order, into runs of about as many changes."""
    names = ["cluster", "group_id"]
    empty = pa.schema([*(CHANGES.schema.field(name) for name in names), ("rows", pa.int64())]).empty_table()
    counted = pa.concat_tables([empty, *(_counted(changes.read(path, names), names) for _, path in piece.files)])
    counted = counted.group_by(names).aggregate([("rows", "sum")])
    keys = counted.set_column(1, "group_id", pc.fill_null(counted["group_id"], "")).sort_by(
        [(name, "ascending") for name in names]
    )
    upto = np.cumsum(keys["rows_sum"].to_numpy())
    found: list[Share] = []
    start = 0
    while start < keys.num_rows:
        held = upto[start - 1] if start else 0
        last = min(int(np.searchsorted(upto, held + limit)), keys.num_rows - 1)
        first_key, last_key = ((keys["cluster"][at].as_py(), keys["group_id"][at].as_py()) for at in (start, last))
        found.append((first_key, last_key))
        start = last + 1
    # What brought no rows is followed all the same.
    return found or [(("", ""), ("", ""))]


def _counted(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    return rows.group_by(names).aggregate([([], "count_all")]).rename_columns([*names, "rows"])


def kinds_of(changes: DeltaFiles, piece: Piece) -> Kinds:
    """Return the kinds of change in a piece."""
    found: Kinds = set()
    for _, path in piece.files:
        columns = changes.read(path, ["kind", "group_id"])
        of_group = pc.is_valid(columns["group_id"])
        distinct = (
            pa.table({"kind": columns["kind"], "of_group": of_group}).group_by(["kind", "of_group"]).aggregate([])
        )
        found |= {(row["kind"], "some" if row["of_group"] else None) for row in distinct.to_pylist()}
    return found


def entries_of(changes: DeltaFiles, piece: Piece, effect: Projection, share: Share) -> list[Entry]:
    """Return the changes of a share's groups that a projection needs, in the order of their histories."""
    keep = _between(*share) & effect.rows_wanted()
    parts = [_of_version(changes.read(path, _ENTRY_COLUMNS).filter(keep), version) for version, path in piece.files]
    empty = pa.schema([*(CHANGES.schema.field(name) for name in _ENTRY_COLUMNS), ("_version", pa.int64())])
    # Numbers restart with a new checkpoint, so the journal's own order has precedence.
    history = [(name, "ascending") for name in ("cluster", "group_id", "subject", "_version", "number")]
    rows = pa.concat_tables([empty.empty_table(), *parts]).sort_by(history)
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
