"""Dashboard: finds the rows of a large table with a piece of a listing, to read only their files and columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from dashboard.reading.listing import Chosen, Listing
from dashboard.reading.questions import ALL_ROWS, Reading
from streaming.tables.schema import TABLES
from streaming.views.reader import Between, Within

# A smaller table is read as a whole.
LARGE_ROWS = 20_000
_TIME = re.compile(r"coalesce\(epoch_ms\((\w+)\), 0\)")
_IDENTIFIER = re.compile(r"\w+")


class PieceRequest(NamedTuple):
    """The query for a piece of a listing, ordered by an expression, then by the listing's key.

    Attributes:
        chosen: The parameters behind the condition.
        is_descending: The expression descends; the key always ascends.
        place: The cursor's position: the value of the order's expression and of each part of the key; empty for the
            first piece.
        shown: How many rows at exactly this position come before the cursor, if there are more of them.
    """

    listing: Listing
    chosen: Chosen
    condition: str
    values: tuple[object, ...]
    order: str
    is_descending: bool
    limit: int
    offset: int
    place: Sequence[Any]
    shown: int = 0

    @property
    def direction(self) -> str:
        """Return the direction of the order as SQL."""
        return "desc" if self.is_descending else "asc"

    @property
    def after(self) -> str:
        """Return the comparison sign between the order's expression and a position that comes before it."""
        return "<" if self.is_descending else ">"


class Span(NamedTuple):
    """A span of rows, in order, that contains a piece.

    Attributes:
        total: The number of matching rows of the listing.
        bounds: Conditions that exclude most rows outside of the span.
        before: The number of matching rows before the span; 0 after a cursor.
        rows: The minimum number of matching rows in the span after the cursor.
    """

    total: int
    bounds: Mapping[str, object]
    before: int
    rows: int


def span_of(reading: Reading, request: PieceRequest) -> Span | None:
    """Return the span of a piece; None if the listing is small, or the files are in another order."""
    listing, chosen, limit, place = request.listing, request.chosen, request.limit, request.place
    columns = _leading(listing, request.order)
    if (
        limit >= ALL_ROWS
        or not columns
        or "group_id" in chosen
        or "member_id" in chosen
        or _is_small(reading, listing.table)
    ):
        return None
    # Rows without a file are in no span; and all rows are in all files.
    if limit >= ALL_ROWS or listing.unwritten(reading):
        return None
    table = _places(reading, request, columns)
    total = int(table["upto"][-1].as_py()) if table.num_rows else 0
    sql, parameters = "upto > ? and upto - n < ?", [request.offset, request.offset + limit]
    if place:
        parts = [place[0], *(place[1 + listing.key.index(column)] for column in columns[1:])]
        names = [f"place_{number}" for number in range(1, len(parts))]
        rest = f"row({', '.join(names)}) >= row({', '.join('?' * len(names))})" if names else "true"
        sql = f"(place_0 {request.after} ? or (place_0 = ? and {rest}))"
        parameters = [parts[0], *parts]
    found = reading.sql(f"select * from places where {sql} order by upto", {"places": table}, parameters)
    if not found.num_rows:
        return Span(total, {}, 0, 0)
    upto = found["upto"].to_pylist()
    # The first rows may be before the cursor, in part or as a whole.
    enough = upto[0] + limit + request.shown
    last = next((at for at, rows in enumerate(upto) if rows >= enough), len(upto) - 1) if place else -1
    first_place, last_place = (
        [found[f"place_{number}"][at].as_py() for number in range(len(columns))] for at in (0, last)
    )
    bounds = _bounds(columns, request, first_place, last_place)
    joined = _joined(listing.where(reading, chosen), bounds)
    if place:
        return Span(total, joined, 0, upto[last] - upto[0])
    # The bounds begin where the first of their columns that differs begins.
    same = " and ".join(f"place_{number} = ?" for number in range(len(bounds)))
    begin = reading.sql(
        f"select min(upto - n) as before from places where {same}", {"places": table}, first_place[: len(bounds)]
    )
    before = begin["before"][0].as_py()
    return Span(total, joined, before, upto[last] - before)


def _is_small(reading: Reading, table: str) -> bool:
    rows = reading.tables.row_count(table)
    return rows is not None and rows < LARGE_ROWS


def _leading(listing: Listing, expression: str) -> tuple[str, ...]:
    """Return the leading columns of an order if the table's files are roughly in that order; otherwise none.

    Files are clustered by some columns, and append-only files are as old as their rows.
    """
    if listing.made is not None:
        return ()
    time = _TIME.fullmatch(expression)
    first, table = time[1] if time else expression, TABLES[listing.table]
    if first not in table.cluster_by and not (time and table.append_only):
        return ()
    rest = [part for part in listing.key if part in ("cluster", "group_id") and part != first]
    return (first, *rest)


def _places(reading: Reading, request: PieceRequest, columns: Sequence[str]) -> pa.Table:
    """Return how many rows match at each position of an order, and up to it: place_0, place_1, ..., n, upto."""
    listing, chosen, condition = request.listing, request.chosen, request.condition
    used = set(_IDENTIFIER.findall(condition)).union(columns)
    shown = ", ".join(
        f"{expression} as place_{number}" for number, expression in enumerate((request.order, *columns[1:]))
    )
    by = ", ".join([f"place_0 {request.direction}", *(f"place_{number}" for number in range(1, len(columns)))])
    sql = f"""
        with counted as (select {shown}, count(*) as n from listed where {condition} group by all)
        select *, (sum(n) over (order by {by} rows unbounded preceding))::bigint as upto from counted order by upto
    """
    narrow = [name for name in TABLES[listing.table].names if name in used]

    def compute() -> pa.Table:
        return reading.sql(sql, {"listed": listing.rows(reading, chosen, columns=narrow)}, request.values)

    where = str(listing.where(reading, chosen))
    key = ("places", listing.name, where, condition, request.values, request.order, request.direction)
    return reading.kept(key, [listing.table], compute)


def _bounds(columns: Sequence[str], request: PieceRequest, first: list[Any], last: list[Any]) -> dict[str, object]:
    """Return conditions that hold from the first to the last position: on their equal columns and the next one."""
    found: dict[str, object] = {}
    is_time = _TIME.fullmatch(request.order) is not None
    for number, column in enumerate(columns):
        low, high = first[number], last[number]
        if number == 0 and request.is_descending:
            low, high = high, low
        # A time that is null counts as 0.
        found[column] = Within(low, high + 1, low <= 0) if number == 0 and is_time else Between(low, high)
        if low != high:
            break
    return found


def _joined(where: Mapping[str, object], bounds: Mapping[str, object]) -> dict[str, object]:
    """Combine bounds with the existing conditions: for a column in both, the narrower span."""
    found = dict(bounds)
    for column in bounds:
        there, bound = where.get(column), bounds[column]
        if isinstance(there, Within) and isinstance(bound, Within):
            since = max((ms for ms in (there.since_ms, bound.since_ms) if ms is not None), default=None)
            until = min((ms for ms in (there.until_ms, bound.until_ms) if ms is not None), default=None)
            # Without bounds every time matches, including null.
            or_null = there.or_null or there == Within()
            found[column] = Within(since, until, or_null and bound.or_null)
        elif there is not None:
            del found[column]
    return found
