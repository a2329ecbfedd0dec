"""The rows of the tables of a run as bags, for the law that the cut of the input does not matter."""

from __future__ import annotations

import json
from collections import Counter

import pyarrow as pa
from deltalake import DeltaTable

from streaming.settings.locations import Location
from streaming.tables.location import table_uri
from streaming.tables.schema import REJECTED_EVENTS, TABLES

# The columns for which the law holds are all but these.
OF_THE_CUT = ("detected_at", "seen_at", "source", "position", "batch")


def rows_of(tables: Location, name: str) -> pa.Table:
    """Return a table as a reader without Spark sees it."""
    return DeltaTable(table_uri(tables, name)).to_pyarrow_table()


def bags_of(tables: Location) -> dict[str, Counter[str]]:
    """Return, for each table, its rows as a bag, without the columns that depend on the cut."""
    return {name: _bag(rows_of(tables, name)) for name in TABLES}


def differences(expected: dict[str, Counter[str]], actual: dict[str, Counter[str]]) -> list[str]:
    """Return in which rows two runs differ, as text; nothing when they are the same."""
    found = []
    for name in sorted(expected | actual):
        missing, more = expected[name] - actual[name], actual[name] - expected[name]
        found += [f"{name}: missing {count} x {row}" for row, count in sorted(missing.items())[:3]]
        found += [f"{name}: not expected {count} x {row}" for row, count in sorted(more.items())[:3]]
        if missing or more:
            found.append(f"{name}: {missing.total()} missing, {more.total()} not expected")
    return found


def repeated_keys(tables: Location) -> list[str]:
    """Return which keys a table has more than once; of rejected inputs a bag is kept."""
    found = []
    for name, table in TABLES.items():
        if table is not REJECTED_EVENTS:
            keys = rows_of(tables, name).select(list(table.key)).to_pylist()
            counts = Counter(json.dumps(key, sort_keys=True, default=str) for key in keys)
            found += [f"{name}: {count} x {key}" for key, count in counts.items() if count > 1]
    return found


def _bag(rows: pa.Table) -> Counter[str]:
    kept = rows.drop_columns([name for name in OF_THE_CUT if name in rows.column_names])
    return Counter(json.dumps(row, sort_keys=True, default=str) for row in kept.to_pylist())
