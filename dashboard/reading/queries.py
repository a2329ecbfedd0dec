"""Dashboard: DuckDB over Arrow columns: bounded in time and memory, without access to files or network."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa

# A value of the wrong type, or one that no column can have.
UNFIT_VALUES = (
    duckdb.BinderException,
    duckdb.ConversionException,
    duckdb.InvalidInputException,
    duckdb.OutOfRangeException,
    duckdb.TypeMismatchException,
)


class QueryTimeoutError(Exception):
    """A query took longer than it may."""


class Queries:
    """Runs SQL over named tables. Users' values are passed as parameters, never as text of the query.

    Args:
        memory_bytes: The limit for all queries together.

    Attributes:
        timeout_s: For how long one may run.
    """

    def __init__(self, *, memory_bytes: int, timeout_ms: int) -> None:
        self.timeout_s = timeout_ms / 1000
        self._root = duckdb.connect(
            config={
                "enable_external_access": "false",
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
                "memory_limit": f"{memory_bytes >> 20}MiB",
                "threads": "2",
                "lock_configuration": "true",
            }
        )
        self._opening = threading.Lock()

    def run(self, sql: str, tables: Mapping[str, pa.Table], parameters: Sequence[Any] = ()) -> pa.Table:
        """Return the rows of a query.

        Args:
            tables: By the names that the query uses.

        Raises:
            QueryTimeoutError: It took too long.
        """
        with self._opening:
            cursor = self._root.cursor()
        timer = threading.Timer(self.timeout_s, cursor.interrupt)
        timer.daemon = True
        timer.start()
        try:
            for name, rows in tables.items():
                cursor.register(name, rows)
            found: pa.Table = cursor.sql(sql, params=list(parameters) or None).to_arrow_table()
            return found
        except duckdb.InterruptException as error:
            raise QueryTimeoutError(f"the query took longer than {self.timeout_s:g} s") from error
        finally:
            timer.cancel()
            cursor.close()
