"""Dashboard: answers for programs: JSON with times in RFC 3339, or CSV that no spreadsheet reads as formulas."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from fastapi import Request
from fastapi.responses import JSONResponse, Response

from streaming.tables.schema import Row
from streaming.terminal.escape import printable
from streaming.terminal.output import TIMES, with_times

# Spreadsheets read a cell that begins like this as a formula, or skip such a character before one.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
# If a semicolon separates cells, the text after one is a cell of its own, even in quotes.
_LATER_FORMULA = re.compile(r"(;[ \"']*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])")
# Readers of CSV may take these for the end of a cell, or drop them.
_QUOTED = re.compile(r"[\",;\t\r\n]|^ | $")
TOTAL_HEADER = "x-total-count"


class PlainJson(JSONResponse):
    """JSON in which invisible characters, and those that change the text direction, are escaped."""

    def render(self, content: Any) -> bytes:
        """Return the text of the answer."""
        return plain_json(json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")))


def plain_json(text: str) -> bytes:
    """Return JSON with the characters escaped that a terminal would act on: control characters and directions.

    Example:
        >>> plain_json('["日", "\\u202e"]').decode()
        '["日", "\\\\u202e"]'
    """
    if not text.isprintable():
        text = "".join(character if character.isprintable() else json.dumps(character)[1:-1] for character in text)
    return text.encode("utf-8")


def json_answer(value: Mapping[str, Any]) -> Response:
    """Return an answer as JSON; fields that are times become RFC 3339."""
    return PlainJson(with_times(value, TIMES))


def csv_answer(
    rows: Sequence[Row], columns: Iterable[str], name: str, *, total: int | None = None, following: str = ""
) -> Response:
    """Return rows as CSV with a heading.

    Args:
        total: The number of all rows, if more than these; in the header ``X-Total-Count``.
        following: Address of the rows after these, in the header ``Link``; empty if there are none.
    """
    names = list(columns)
    lines = [names]
    for row in rows:
        plain = with_times(row, TIMES)
        assert isinstance(plain, dict)
        lines.append([cell(plain.get(column)) for column in names])
    text = "".join(f"{','.join(map(_quoted, line))}\r\n" for line in lines)
    headers = {
        "content-disposition": f'attachment; filename="{name}.csv"',
        TOTAL_HEADER: str(len(rows) if total is None else total),
    }
    if following:
        headers["link"] = f'<{following}>; rel="next"'
    return Response(text.encode("utf-8"), media_type="text/csv; charset=utf-8", headers=headers)


def following_address(request: Request, cursor: str | None) -> str:
    """Return the address of the next part of an answer; empty if there is none."""
    if cursor is None:
        return ""
    given = [(name, value) for name, value in request.query_params.multi_items() if name != "cursor"]
    return f"{request.url.path}?{urlencode([*given, ('cursor', cursor)])}"


def cell(value: object) -> Any:
    """Return a value as a cell: null is empty, a list is JSON, a text that looks like a formula gets an apostrophe.

    Characters that a terminal would act on are escaped, as in ``printable``.

    Example:
        >>> cell("=1+1"), cell("a;=1"), cell("a"), cell(-1), cell(None), cell(["x"])
        ("'=1+1", "a;'=1", 'a', -1, '', '["x"]')
    """
    if value is None:
        return ""
    if isinstance(value, list | dict):
        value = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str):
        text = _LATER_FORMULA.sub(r"\1'", printable(value))
        return f"'{text}" if text.lstrip(" ").startswith(FORMULA_STARTS) else text
    return value


def _quoted(value: object) -> str:
    text = str(value)
    if not _QUOTED.search(text):
        return text
    return '"' + text.replace('"', '""') + '"'
