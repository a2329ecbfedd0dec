"""Dashboard: the common base of all questions: the tables' snapshots, DuckDB, and cached results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dashboard.reading.cache import Kept, ResultCache
from dashboard.reading.dependencies import note_reads
from dashboard.reading.opened_tables import OpenedTables
from dashboard.reading.queries import Queries
from streaming.settings.locations import Location
from streaming.tables.schema import TABLES
from streaming.views.related_annotations import DEFAULT_SPANS, AnnotationSpans

if TYPE_CHECKING:
    # Commands that need no settings do not load the settings' model, which takes longer than their answer.
    from streaming.settings.model import Dashboard, Widespread
    from streaming.views.freshness import Freshness

# More than any table has.
ALL_ROWS = 1_000_000_000
# Limits of memory and time for the answers of one command.
_COMMAND_MEMORY_BYTES, _COMMAND_TIMEOUT_MS = 1 << 30, 600_000


@dataclass(frozen=True)
class Reading:
    """Reads the tables for questions about them.

    Attributes:
        tables: The tables at their current versions; reads like ``streaming.views.reader.Reader``, so that every
            function of ``streaming.views`` takes it.
        max_rows: The most rows in one answer.
        widespread_settings: When a kind of findings is widespread; None for the defaults of the section `widespread`.
        near: Which annotations are near something.
    """

    tables: OpenedTables
    queries: Queries
    cache: ResultCache
    max_rows: int
    widespread_settings: Widespread | None = None
    near: AnnotationSpans = DEFAULT_SPANS

    @classmethod
    def of(
        cls,
        root: Location,
        settings: Dashboard,
        *,
        widespread: Widespread | None = None,
        near: AnnotationSpans = DEFAULT_SPANS,
        must_exist: bool = True,
    ) -> Reading:
        """Read the tables below a folder, for a server, following them from version to version.

        Args:
            widespread: The section of that name; None for its defaults.

        Raises:
            NoTablesError: The folder has no tables.
        """
        from dashboard.reading.snapshots import TableSnapshots

        return cls(
            tables=TableSnapshots(root, must_exist=must_exist),
            queries=Queries(memory_bytes=settings.query_memory_bytes, timeout_ms=settings.query_timeout_ms),
            cache=ResultCache(settings.cache_bytes),
            max_rows=settings.max_rows,
            widespread_settings=widespread,
            near=near,
        )

    @classmethod
    def once(cls, root: Location, *, widespread: Widespread | None = None) -> Reading:
        """Read the tables below a folder, for one command.

        Raises:
            NoTablesError: The folder has no tables.
        """
        return cls(
            tables=OpenedTables(root),
            queries=Queries(memory_bytes=_COMMAND_MEMORY_BYTES, timeout_ms=_COMMAND_TIMEOUT_MS),
            cache=ResultCache(_COMMAND_MEMORY_BYTES),
            max_rows=ALL_ROWS,
            widespread_settings=widespread,
        )

    @cached_property
    def widespread(self) -> Widespread:
        """Return when a kind of findings is widespread."""
        from streaming.settings.model import load

        return self.widespread_settings or load().widespread

    @property
    def freshness(self) -> Freshness:
        """Return what is known of the present."""
        return self.tables.freshness

    def versions(self, *names: str) -> tuple[int, ...]:
        """Return the versions of these tables, or of all."""
        now = self.tables.versions
        return tuple(now[name] for name in names or TABLES)

    def kept(self, key: Hashable, tables: Sequence[str], compute: Callable[[], Kept]) -> Kept:
        """Return a result that is computed once for each version of the tables behind it."""
        note_reads(tables)
        return self.cache.get(key, self.versions(*tables), compute)

    def kept_as_read(self, key: Hashable, compute: Callable[[], tuple[Kept, Collection[str]]]) -> Kept:
        """Return a result that is computed once for each version of the tables that it was computed from."""
        return self.cache.get_as_read(key, self.tables.versions, compute)

    def columns(self, name: str, columns: Sequence[str], where: Mapping[str, Any] | None = None) -> pa.Table:
        """Return columns of the matching rows, cached for the table's version."""
        parts = tuple(sorted((column, str(value)) for column, value in (where or {}).items()))
        return self.kept(
            (name, *columns, parts), [name], lambda: self.tables.read(name, columns=list(columns), where=where)
        )

    def sql(self, sql: str, tables: Mapping[str, pa.Table], parameters: Sequence[Any] = ()) -> pa.Table:
        """Return the rows of a query, see ``Queries.run``."""
        return self.queries.run(sql, tables, parameters)
