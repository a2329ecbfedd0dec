"""Shell: one Delta table in a folder, written without Spark: a commit costs milliseconds instead of half a second.

Follows the Delta protocol (delta-io/delta, PROTOCOL.md): data files first, then one JSON file of actions that comes
into being atomically under a name that no other writer can take (a hard link). The loser of a race starts
over from what is there then, so every write is a function that may run again. Readers and Spark see an ordinary
table: reader version 1, change data feed, clustering.
"""

from __future__ import annotations

import errno
import json
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from streaming.tables.arrow_rows import as_schema
from streaming.tables.delta_actions import Action, Mark, add, commit_info, creation, more_columns, remove, txn
from streaming.tables.errors import TableError
from streaming.tables.schema import CHECKPOINT_INTERVAL, Table, delta_fields

ROWS_PER_FILE = 100_000  # rewriting one row costs its whole file
SMALL_FILE_ROWS = 20_000  # files below this are compacted now and then
SMALL_FILES = 24  # this many of them are worth it
_FILES_AT_ONCE = 500  # compacted in one commit, which bounds its memory
_ATTEMPTS = 20
# What file systems answer that know no hard links (exFAT, some network mounts).
_NO_HARD_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


class Files(NamedTuple):
    """The files of one version of the table, with their entries in the log."""

    version: int
    listing: pa.Table

    def pruned(self, bounds: Mapping[str, tuple[Any, Any]], some_null: str | None = None) -> list[str]:
        """Return the paths of files that may hold rows within all bounds (inclusive).

        Args:
            bounds: Column -> smallest and largest value.
            some_null: A column that must be null in at least one row.
        """
        listing = self.listing
        keep = pa.array([True] * listing.num_rows, pa.bool_())
        for column, (smallest, largest) in bounds.items():
            low, high = f"min.{column}", f"max.{column}"
            if low in listing.column_names and high in listing.column_names:
                outside = pc.or_(pc.less(listing[high], smallest), pc.greater(listing[low], largest))
                keep = pc.and_(keep, pc.invert(pc.fill_null(outside, False)))
        if some_null and f"null_count.{some_null}" in listing.column_names:
            keep = pc.and_(keep, pc.not_equal(pc.fill_null(listing[f"null_count.{some_null}"], 1), 0))
        paths: list[str] = listing["path"].filter(keep).to_pylist()
        return paths


class CurrentRows(NamedTuple):
    """Current rows and their places: row i is row ``places[i][1]`` of the file ``places[i][0]``."""

    rows: pa.Table
    places: list[tuple[str, int]]


class Replacement(NamedTuple):
    """Rows to remove, with their places, and rows to add."""

    going: CurrentRows
    coming: pa.Table


class DeltaFiles:
    """One table in one folder.

    Args:
        root: Root folder of the tables.
        table: What it holds; made when it is not there yet.
    """

    def __init__(self, root: Path, table: Table) -> None:
        self.table = table
        self.folder = root / table.name
        self._log = self.folder / "_delta_log"
        self._delta = self._open()
        self._listing: Files | None = None

    def _open(self) -> DeltaTable:
        for _ in range(_ATTEMPTS):
            try:
                delta = DeltaTable(str(self.folder))
                actions = self._lacking(delta)
                version = delta.version() + 1
                if not actions:
                    return delta
            except TableNotFoundError:
                actions, version = creation(self.table), 0
            try:
                self._log.mkdir(parents=True, exist_ok=True)
                self._put(version, actions)
            except FileExistsError:
                pass  # Another process has just created it.
            except OSError as error:
                raise TableError(
                    f"{self.folder} cannot be written: {error.strerror}. Choose a folder with --tables."
                ) from error
        raise self._too_slow()

    def _lacking(self, delta: DeltaTable) -> list[Action]:
        """Return what gives a table of an older release the columns that it lacks; columns of others stay."""
        there = {field["name"]: field["type"] for field in json.loads(delta.schema().to_json())["fields"]}
        wanted = delta_fields(self.table)
        for field in wanted:
            kind = there.get(field["name"], field["type"])
            if kind != field["type"]:
                raise TableError(
                    f"{self.folder} is another table: its column {field['name']} is {_text(kind)}, not "
                    f"{_text(field['type'])}. Choose a folder with --tables."
                )
        lacking = [field for field in wanted if field["name"] not in there]
        return more_columns(delta, lacking) if lacking else []

    def _too_slow(self) -> TableError:
        return TableError(f"{self.folder}: concurrent commits, {_ATTEMPTS} attempts failed")

    # -- what is there ------------------------------------------------------------------------------------------

    def refresh(self) -> int:
        """See what others have committed; return the newest version."""
        self._delta.update_incremental()
        return self.version

    @property
    def version(self) -> int:
        """Return the version that was last seen."""
        return self._delta.version()

    @property
    def identity(self) -> str:
        """Return the table's own id, which it has for life."""
        return str(self._delta.metadata().id)

    def mark(self, app_id: str) -> int | None:
        """Return up to where this application has written; None = nothing yet."""
        return self._delta.transaction_version(app_id)

    def files(self) -> Files:
        """Return the files of the version that was last seen."""
        if self._listing is None or self._listing.version != self.version:
            self._listing = Files(self.version, pa.table(self._delta.get_add_actions(flatten=True)))
        return self._listing

    def current_rows(
        self, bounds: Mapping[str, tuple[Any, Any]], wanted: pc.Expression, *, some_null: str | None = None
    ) -> CurrentRows:
        """Read the rows that match, and remember their places."""
        found: list[pa.Table] = []
        places: list[tuple[str, int]] = []
        for path in self.files().pruned(bounds, some_null):
            rows = self.read(path)
            rows = rows.append_column("_at", pa.array(range(rows.num_rows), pa.int64())).filter(wanted)
            places += [(path, at) for at in rows["_at"].to_pylist()]
            found.append(rows.drop_columns("_at"))
        return CurrentRows(pa.concat_tables(found) if found else self.table.schema.empty_table(), places)

    def added_after(self, version: int) -> list[tuple[int, str]]:
        """Return (version, path) of each file that brought new rows after that version, in the order of the log.

        Raises:
            FileNotFoundError: The log no longer reaches back that far.
        """
        added = []
        for each in range(version + 1, self.version + 1):
            for line in (self._log / f"{each:020d}.json").read_bytes().splitlines():
                action = json.loads(line)
                if "add" in action and action["add"]["dataChange"]:
                    added.append((each, action["add"]["path"]))
        return added

    def read(self, path: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Read one file, or some of its columns."""
        names = list(columns or self.table.names)
        rows = pq.ParquetFile(self.folder / path).read(columns=names)
        schema = pa.schema([self.table.schema.field(name) for name in names])
        return as_schema(rows, schema)

    # -- what is written ----------------------------------------------------------------------------------------

    def append(self, rows: pa.Table, mark: Mark) -> bool:
        """Add rows under this mark; False when they are there already."""
        self.refresh()
        adds = None
        for _ in range(_ATTEMPTS):
            if self.has(mark):
                return False
            adds = adds or self._write(rows)
            if self._commit("WRITE", [*adds, txn(mark)], blind=True):
                return True
        raise self._too_slow()

    def replace(self, compute: Callable[[], Replacement], mark: Mark, also: Sequence[Mark] = ()) -> bool:
        """Put rows in the place of others under this mark; False when that is done already, or nothing changes.

        Args:
            compute: Runs again after a concurrent commit.
            also: Further marks to set in the same commit.
        """
        self.refresh()
        for _ in range(_ATTEMPTS):
            if self.has(mark):
                return False
            going, coming = compute()
            if not (going.places or coming.num_rows):
                return False
            actions = [*self._replacing(going, coming), *map(txn, (mark, *also))]
            if self._commit("MERGE", actions, blind=False):
                return True
        raise self._too_slow()

    def has(self, mark: Mark) -> bool:
        """Return whether the application has written that version already."""
        reached = self.mark(mark.app_id)
        return reached is not None and reached >= mark.version

    def _replacing(self, going: CurrentRows, coming: pa.Table) -> list[Action]:
        gone: dict[str, list[int]] = {}
        for path, at in going.places:
            gone.setdefault(path, []).append(at)
        staying, removes = [], []
        sizes = self._sizes()
        for path, places in sorted(gone.items()):
            rows = self.read(path)
            stays = [True] * rows.num_rows
            for place in places:
                stays[place] = False
            staying.append(rows.filter(pa.array(stays, pa.bool_())))
            removes.append(remove(path, sizes[path], data_change=True))
        adds = self._write(pa.concat_tables([*staying, coming]))
        return [*removes, *adds, *self._feed(going.rows, coming)]

    def _feed(self, gone: pa.Table, come: pa.Table) -> list[Action]:
        """Report the change data feed which rows changed; without it, readers take whole files for changed."""
        gone_keys, come_keys = self._keys(gone), self._keys(come)
        before = ["update_preimage" if key in come_keys else "delete" for key in gone_keys]
        after = ["update_postimage" if key in gone_keys else "insert" for key in come_keys]
        if not (before or after):
            return []
        kinds = pa.array(before + after, pa.string())
        rows = pa.concat_tables([gone, come]).append_column("_change_type", kinds)
        path = f"_change_data/cdc-{uuid.uuid4()}.zstd.parquet"
        target = self.folder / path
        target.parent.mkdir(exist_ok=True)
        pq.write_table(rows, target, compression="zstd")
        return [{"cdc": {"path": path, "partitionValues": {}, "size": target.stat().st_size, "dataChange": False}}]

    def _keys(self, rows: pa.Table) -> dict[tuple[Any, ...], None]:
        keys = zip(*(rows[name].to_pylist() for name in self.table.key), strict=True)
        return dict.fromkeys(keys)

    def _sizes(self) -> dict[str, int]:
        listing = self.files().listing
        return dict(zip(listing["path"].to_pylist(), listing["size_bytes"].to_pylist(), strict=True))

    def _write(self, rows: pa.Table, *, data_change: bool = True) -> list[Action]:
        """Write data files in which rows that are read together are clustered."""
        if not rows.num_rows:
            return []
        rows = rows.sort_by([(name, "ascending") for name in self.table.cluster_by])
        adds: list[Action] = []
        for part in self._parts(rows):
            path = f"part-{len(adds):05d}-{uuid.uuid4()}-c000.zstd.parquet"
            pq.write_table(part, self.folder / path, compression="zstd", row_group_size=ROWS_PER_FILE // 4)
            size = (self.folder / path).stat().st_size
            adds.append(add(path, size, part, data_change=data_change))
        return adds

    def _parts(self, rows: pa.Table) -> Iterator[pa.Table]:
        """Split rows into files; closed spans are apart, so that readers of open ones skip them."""
        kinds = [rows]
        if self.table.ends is not None and rows.num_rows >= SMALL_FILE_ROWS:
            is_open = pc.is_null(rows[self.table.ends])
            kinds = [rows.filter(is_open), rows.filter(pc.invert(is_open))]
        for kind in kinds:
            for offset in range(0, kind.num_rows, ROWS_PER_FILE):
                yield kind.slice(offset, ROWS_PER_FILE)

    def _commit(self, operation: str, actions: list[Action], *, blind: bool) -> bool:
        """Commit after the last read version; False when another commit was faster."""
        version = self.version + 1
        try:
            self._put(version, [commit_info(operation, read_version=self.version, blind=blind), *actions])
        except FileExistsError:
            self.refresh()
            return False
        self.refresh()
        if version % CHECKPOINT_INTERVAL == 0:
            self._maintain()
        return True

    def _put(self, version: int, actions: list[Action]) -> None:
        """Create the log's next file atomically, and only if it does not exist.

        Raises:
            FileExistsError: It exists.
        """
        target = self._log / f"{version:020d}.json"
        hidden = self._log / f".{version:020d}.{uuid.uuid4()}.tmp"
        hidden.write_text("".join(f"{json.dumps(action)}\n" for action in actions), encoding="utf-8")
        try:
            _name_once(hidden, target)
        finally:
            hidden.unlink()

    # -- upkeep -------------------------------------------------------------------------------------------------

    def _maintain(self) -> None:
        self.compact()
        self.write_checkpoint()

    def write_checkpoint(self) -> None:
        """Sum the log up in a checkpoint, and drop commits that are older than the log's retention."""
        self._delta.create_checkpoint()
        self._delta.cleanup_metadata()

    def compact(self, at_least: int = SMALL_FILES) -> int:
        """Compact small files, if there are enough; return how many were removed. The rows stay the same."""
        listing = self.files().listing
        small = listing.filter(pc.less(listing["num_records"], SMALL_FILE_ROWS)).slice(0, _FILES_AT_ONCE)
        if small.num_rows < at_least:
            return 0
        paths, sizes = small["path"].to_pylist(), small["size_bytes"].to_pylist()
        adds = self._write(pa.concat_tables([self.read(path) for path in paths]), data_change=False)
        removes = [remove(path, size, data_change=False) for path, size in zip(paths, sizes, strict=True)]
        # Not retried: the faster writer will do it.
        return len(paths) if self._commit("OPTIMIZE", [*removes, *adds], blind=False) else 0

    def drop_files(self, paths: Sequence[str]) -> bool:
        """Take files with all their rows out of the table."""
        sizes = self._sizes()
        return self._commit("DELETE", [remove(path, sizes[path], data_change=True) for path in paths], blind=False)


def _name_once(hidden: Path, target: Path) -> None:
    """Give a whole file its name, unless the name is taken.

    Raises:
        FileExistsError: It is.
    """
    try:
        os.link(hidden, target)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        # The next best: the name is taken at once, the content follows in one write.
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            os.write(descriptor, hidden.read_bytes())
        finally:
            os.close(descriptor)


def _text(kind: object) -> str:
    return kind if isinstance(kind, str) else json.dumps(kind)
