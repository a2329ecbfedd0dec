"""Shell: where tables are below their root."""

from __future__ import annotations

from deltalake import DeltaTable

from streaming.settings.locations import Location


def table_uri(root: Location, name: str) -> str:
    """Return where a table below a root is."""
    return f"{str(root).rstrip('/')}/{name}"


def is_table(root: Location, name: str) -> bool:
    """Return whether a table is there."""
    return DeltaTable.is_deltatable(table_uri(root, name))
