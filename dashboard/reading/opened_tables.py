"""Dashboard: the tables of a command, each opened once when it is first read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from streaming.settings.locations import Location
from streaming.tables.replay_tables import EVERY_TABLE
from streaming.views.reader import Reader

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from streaming.views.freshness import Freshness
    from streaming.views.platforms import PlatformState


class OpenedTables(Reader):
    """Reads like ``Reader``, every table at the version that it had when it was first read.

    Raises:
        NoTablesError: The folder has no tables.
    """

    # Whether the tables are read repeatedly, so that an unreadable table may become readable later.
    is_followed = False

    def __init__(self, root: Location) -> None:
        super().__init__(root)
        self._opened: dict[str, DeltaTable | None] = {}

    @property
    def versions(self) -> Mapping[str, int]:
        """Return the distinguishing versions of the tables; a command sees only one version of each."""
        return dict.fromkeys(EVERY_TABLE, 0)

    @cached_property
    def freshness(self) -> Freshness:
        """Return what is known of the present, as first read."""
        from streaming.views.liveness_reader import read_freshness

        return read_freshness(self.root)

    @property
    def platforms(self) -> Sequence[PlatformState]:
        """Return how far the pods of each platform are known now."""
        from streaming.machine.clock import now_ms
        from streaming.views.platforms import followed_rows, platform_states

        return platform_states(followed_rows(self), now_ms())

    @property
    def has_tables(self) -> bool:
        """Return whether there is any table."""
        return True

    @property
    def unreadable(self) -> Sequence[str]:
        """Return the tables that cannot be read: none, because a command fails with the first of them."""
        return ()

    def _table(self, name: str) -> DeltaTable | None:
        if name not in self._opened:
            self._opened[name] = super()._table(name)
        return self._opened[name]

    def row_count(self, name: str) -> int | None:
        """Return the number of rows of a table, from its log; None if a file does not state it."""
        handle = self._table(name)
        if handle is None:
            return 0
        counts = handle.get_add_actions(flatten=True)["num_records"].to_pylist()
        return None if None in counts else sum(counts)

    def size(self, name: str) -> dict[str, int | None]:
        """Return version, files and bytes of a table; None if the table does not exist yet."""
        handle = self._table(name)
        if handle is None:
            return {"version": None, "files": None, "bytes": None}
        sizes = handle.get_add_actions(flatten=True)["size_bytes"]
        return {"version": handle.version(), "files": len(sizes), "bytes": sum(sizes.to_pylist())}
