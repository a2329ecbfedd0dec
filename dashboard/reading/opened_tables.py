"""Dashboard: the tables as a command reads them: each is opened once, as something first reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from streaming.settings.locations import Location
from streaming.tables.schema import TABLES
from streaming.views.reader import Reader

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from streaming.views.freshness import Freshness


class OpenedTables(Reader):
    """Reads like ``Reader``, every table at the version that it had when it was first read.

    Raises:
        NoTablesError: The folder has no tables.
    """

    # Whether they are read again and again, so that what cannot be read now may be read later.
    is_followed = False

    def __init__(self, root: Location) -> None:
        super().__init__(root)
        self._opened: dict[str, DeltaTable | None] = {}

    @property
    def versions(self) -> Mapping[str, int]:
        """Return what distinguishes versions of the tables: a command sees one of each."""
        return dict.fromkeys(TABLES, 0)

    @cached_property
    def freshness(self) -> Freshness:
        """Return what is known of the present, as it is read first."""
        from streaming.views.liveness_reader import read_freshness

        return read_freshness(self._root)

    @property
    def has_tables(self) -> bool:
        """Return whether there is any table."""
        return True

    @property
    def unreadable(self) -> Sequence[str]:
        """Return the tables that cannot be read: none, for a command fails with the first of them."""
        return ()

    def _table(self, name: str) -> DeltaTable | None:
        if name not in self._opened:
            self._opened[name] = super()._table(name)
        return self._opened[name]

    def row_count(self, name: str) -> int | None:
        """Return how many rows a table has, by its log; None: a file does not state its number."""
        handle = self._table(name)
        if handle is None:
            return 0
        counts = handle.get_add_actions(flatten=True)["num_records"].to_pylist()
        return None if None in counts else sum(counts)

    def size(self, name: str) -> dict[str, int | None]:
        """Return version, files and bytes of a table; None: the table does not exist yet."""
        handle = self._table(name)
        if handle is None:
            return {"version": None, "files": None, "bytes": None}
        sizes = handle.get_add_actions(flatten=True)["size_bytes"]
        return {"version": handle.version(), "files": len(sizes), "bytes": sum(sizes.to_pylist())}
