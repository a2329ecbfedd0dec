"""Shell: the locations of tables below their root, and checks of their content."""

from __future__ import annotations

import contextlib
import json

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from streaming.settings.locations import Location, catalog_schema
from streaming.stores.store_path import table_patience
from streaming.tables.delta_schema import delta_fields
from streaming.tables.errors import NoTablesError, TableError
from streaming.tables.schema import Table

WRITER_PROPERTY = "rebalance-monitor.writer"
# Every job, of each release, makes these before its first batch: if one is missing, its rows are unknown, not none.
_TOGETHER = frozenset({"assignments", "findings", "groups", "members", "rebalances", "topics"})


def table_uri(root: Location, name: str) -> str:
    """Return the location of a table below a root.

    Raises:
        NoTablesError: The root is a schema of a catalog, which only Spark resolves.
    """
    schema = catalog_schema(root)
    if schema:
        raise NoTablesError(
            f"{schema} is a schema of Spark's catalogue, and this command reads without Spark. Name the folder or URI"
            f" in which the catalogue keeps its tables, with --tables: the job logs it as tables_at when it starts, and"
            f" `DESCRIBE DETAIL {schema}.{name}` in Spark shows it."
        )
    return f"{str(root).rstrip('/')}/{name}"


def is_table(root: Location, name: str, *, soon: bool = False) -> bool:
    """Return whether a table exists; with ``soon`` an unavailable store is given up soon."""
    uri = table_uri(root, name)
    return DeltaTable.is_deltatable(uri, table_patience(uri) if soon else None)


def table_to_read(root: Location, name: str) -> DeltaTable | None:
    """Return a table for a waiting user; an unavailable store is given up soon; None if the table does not exist.

    Raises:
        FileNotFoundError: It is missing beside tables that only exist together with it.
    """
    found = opened_table(root, name)
    if found is None and name in _TOGETHER:
        journal = opened_table(root, "changes")
        # Its first version is that of a job which is about to make the others.
        if journal is not None and journal.version() > 0:
            raise FileNotFoundError(f"{table_uri(root, name)} is missing, though its journal, changes, is there")
    return found


def opened_table(root: Location, name: str) -> DeltaTable | None:
    """Return a table as ``table_to_read`` does; None if it does not exist, also beside others."""
    uri = table_uri(root, name)
    # is_table() would block all other threads while delta-rs waits for the store.
    with contextlib.suppress(TableNotFoundError):
        return DeltaTable(uri, storage_options=table_patience(uri))
    return None


def check_writer(delta: DeltaTable, writer: str, uri: str) -> None:
    """Refuse a table that has another writer.

    Args:
        uri: Its name in errors.

    Raises:
        TableError: Another writer writes the table.
    """
    other = delta.metadata().configuration.get(WRITER_PROPERTY, writer)
    if other != writer:
        raise TableError(
            f"{uri} is written by {other}, not by {writer}. Set tables.writer to {other}, change the writer of"
            f" these tables by `rebalance-monitor optimize --writer {writer}`, or choose others with --tables."
        )


def check_columns(delta: DeltaTable, table: Table, uri: str) -> list[str]:
    """Return the columns missing from a table of an older release; columns that others have added stay.

    Raises:
        TableError: A column has another type, so it is another table.
    """
    there = {field["name"]: field["type"] for field in json.loads(delta.schema().to_json())["fields"]}
    for field in delta_fields(table):
        kind = there.get(field["name"], field["type"])
        if _plain(kind) != _plain(field["type"]):
            raise TableError(
                f"{uri} is another table: its column {field['name']} is {_text(kind)}, not {_text(field['type'])}."
                " Choose a folder with --tables."
            )
    return [field["name"] for field in delta_fields(table) if field["name"] not in there]


def _plain(kind: object) -> object:
    """Return a type without its comments."""
    if isinstance(kind, dict):
        return {key: _plain(value) for key, value in kind.items() if key != "metadata"}
    return [_plain(part) for part in kind] if isinstance(kind, list) else kind


def _text(kind: object) -> str:
    return kind if isinstance(kind, str) else json.dumps(kind)
