"""Dashboard: answers for programs: JSON with times in RFC 3339, or CSV that no spreadsheet takes for formulas."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fastapi.responses import JSONResponse, Response

from streaming.tables.schema import TABLES, TIME, Row
from streaming.terminal.output import with_times

# Spreadsheets take a cell that begins so for a formula, or skip the sign before one.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
TIMES = frozenset(
    {column.name for table in TABLES.values() for column in table.columns if column.type == TIME}
    | {"hour", "last_at", "newest_event", "at"}
)


def json_answer(value: Mapping[str, Any]) -> Response:
    """Return an answer as JSON; fields that are times become RFC 3339."""
    return JSONResponse(with_times(value, TIMES))


def csv_answer(rows: Sequence[Row], columns: Iterable[str], name: str) -> Response:
    """Return rows as CSV with a heading.

    Args:
        rows: The rows.
        columns: Names of the columns, in order.
        name: Of the file.
    """
    out, names = io.StringIO(newline=""), list(columns)
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(names)
    for row in rows:
        plain = with_times(row, TIMES)
        assert isinstance(plain, dict)
        writer.writerow([cell(plain.get(column)) for column in names])
    headers = {"content-disposition": f'attachment; filename="{name}.csv"'}
    return Response(out.getvalue().encode("utf-8"), media_type="text/csv; charset=utf-8", headers=headers)


def cell(value: object) -> object:
    """Return what stands in a cell: null is empty, a list is JSON, a text that looks like a formula gets an apostrophe.

    Example:
        >>> cell("=1+1"), cell("a"), cell(-1), cell(None), cell(["x"])
        ("'=1+1", 'a', -1, '', '["x"]')
    """
    if value is None:
        return ""
    if isinstance(value, list | dict):
        value = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str):
        text = value.replace("\0", "\\0")
        return f"'{text}" if text.lstrip(" ").startswith(FORMULA_STARTS) else text
    return value
