"""Dashboard: one piece of a listing: filtered, ordered, counted, from an offset or from a cursor on."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import pyarrow as pa

from dashboard.reading.listing import AT, SEARCH, SINCE, SYNONYMS, UNTIL, Listing
from dashboard.reading.listing_places import PieceRequest, span_of
from dashboard.reading.queries import UNFIT_VALUES
from dashboard.reading.questions import Reading
from streaming.machine.clock import now_ms
from streaming.tables.schema import Row
from streaming.terminal.time_input import parse_time
from udfs.model.timestamps import LATEST_MS

# The most equal rows before a cursor.
MOST_SHOWN = 1_000_000_000
_BROKEN = "cursor: no answer had this one; send the next_cursor of an answer, unchanged"
_FOREIGN = "cursor: it belongs to another question; send it with the filters and the order of the answer that had it"


class BadQuestionError(Exception):
    """The request is not valid: an unknown parameter, order or cursor."""


class Piece(NamedTuple):
    """Some rows of a listing.

    Attributes:
        rows: As dicts, times in epoch ms.
        total: The number of matching rows, including those of other pieces.
        next_cursor: The beginning of the next piece; None if this is the last one.
    """

    rows: list[Row]
    total: int
    next_cursor: str | None


def piece(
    reading: Reading,
    listing: Listing,
    chosen: Mapping[str, str],
    *,
    sort: str = "",
    limit: int,
    offset: int = 0,
    cursor: str = "",
    is_whole: bool = False,
) -> Piece:
    """Return a piece of a listing.

    Args:
        chosen: Parameter -> value, for the listing's own parameters: its filters, ``q`` (a part of a name, ignoring
            case), ``since``, ``until`` and ``at`` (as ``parse_time`` takes them). An empty value means not given. A
            filter that takes one of a few values accepts several, separated by commas.
        sort: One of the listing's orders, with ``-`` before it to descend; empty for its default.
        offset: The number of rows to skip. cursor: Continue after the piece that returned it.
        is_whole: Include the columns that the listing adds.

    Raises:
        BadQuestionError: A parameter, order or cursor is invalid.
    """
    refuse_others(chosen, listing.parameters, listing.name)
    chosen = {name: _value(listing, name, value) for name, value in chosen.items() if value}
    condition, values = _condition(listing, chosen)
    sort = sort or listing.default
    is_descending, name = sort.startswith("-"), sort.removeprefix("-")
    if name not in listing.orders:
        raise BadQuestionError(f"sort: {name!r} is not one of {', '.join(listing.orders)}")
    place, shown = read_cursor(cursor, sort, len(listing.key)) if cursor else ([], 0)
    order = listing.orders[name]
    # One row more than the piece shows whether another piece follows.
    request = PieceRequest(listing, chosen, condition, values, order, is_descending, limit + 1, offset, place, shown)
    try:
        found, total = _found(reading, request)
    except UNFIT_VALUES as error:
        if not place:
            raise
        raise BadQuestionError(_FOREIGN) from error
    rows = plain_rows(found)
    places = [[row.pop(f"cursor_{number}") for number in range(len(listing.key) + 1)] for row in rows]
    if is_whole:
        at = chosen.get(AT)
        rows = listing.complete(reading, rows, None if at is None else int(at))
    if len(rows) <= limit:
        return Piece(rows, total, None)
    last = places[limit - 1]
    # The next piece skips as many rows with equal columns as were shown.
    repeats = places[:limit].count(last) + shown * (last == place) if places[limit] == last else 0
    return Piece(rows[:limit], total, write_cursor(sort, last, repeats))


def _found(reading: Reading, request: PieceRequest) -> tuple[pa.Table, int]:
    """Return the rows of a piece, and the number of matching rows of the listing."""
    span = span_of(reading, request)
    if span is not None:
        rows = request.listing.rows(reading, request.chosen, bounds=span.bounds)
        inside = request._replace(offset=request.offset - span.before)
        found = _ordered(reading, inside, rows)
        # The rows are fewer than were counted, because the table changed in between.
        if found.num_rows >= min(request.limit, span.rows - inside.offset):
            return found, span.total
    rows = request.listing.rows(reading, request.chosen)
    found = _ordered(reading, request, rows)
    is_last_piece = not request.place and found.num_rows < request.limit
    if is_last_piece and (found.num_rows or not request.offset):
        return found, request.offset + found.num_rows
    sql = f"select count(*) as n from listed where {request.condition}"
    (count,) = reading.sql(sql, {"listed": rows}, request.values).to_pylist()
    return found, count["n"]


def _ordered(reading: Reading, request: PieceRequest, rows: pa.Table) -> pa.Table:
    """Return the matching rows, in order, after a position; with each row's own position as cursor_0, cursor_1, ..."""
    listing, order, where, values = request.listing, request.order, request.condition, request.values
    keys = ", ".join(listing.key)
    offset = request.offset
    if request.place:
        first, *rest = request.place
        marks = ", ".join("?" * len(rest))
        if request.shown:
            at = f"{where} and {order} = ? and row({keys}) = row({marks})"
            sql = f"select count(*) as n from listed where {at}"
            (equal,) = reading.sql(sql, {"listed": rows}, [*values, *request.place]).to_pylist()
            # Some of them may have been removed.
            offset = min(request.shown, equal["n"])
        beyond = ">=" if request.shown else ">"
        where += f" and ({order} {request.after} ? or ({order} = ? and row({keys}) {beyond} row({marks})))"
        values = (*values, first, first, *rest)
    columns = ", ".join(f'"{column}"' for column in listing.columns)
    inner = ", ".join(f"{expression} as cursor_{number}" for number, expression in enumerate((order, *listing.key)))
    sql = (
        f"select {columns}, {inner} from listed where {where}"
        f" order by {order} {request.direction}, {keys} limit ? offset ?"
    )
    return reading.sql(sql, {"listed": rows}, [*values, request.limit, offset])


def refuse_others(given: Iterable[str], taken: Sequence[str], name: str) -> None:
    """Refuse parameters that would have no effect.

    Args:
        name: The requested item, for the message.

    Raises:
        BadQuestionError: A parameter is unknown, or is given twice.
    """
    names = sorted(given)
    if others := sorted(set(names).difference(taken)):
        raise BadQuestionError(f"{name} does not take {others[0][:50]!r}; it takes {', '.join(taken) or 'none'}")
    if repeated := [earlier for earlier, later in pairwise(names) if earlier == later]:
        raise BadQuestionError(f"{repeated[0]} is given more than once; {name} takes one value of it")


def _value(listing: Listing, name: str, value: str) -> str:
    """Return the value of a parameter in the form of its condition; yes is true, and no is false.

    Raises:
        BadQuestionError: The parameter does not take this value.
    """
    if name in (SINCE, UNTIL, AT):
        return str(time_parameter(name, value))
    taken = listing.values.get(name)
    return value if taken is None else ",".join(_taken(name, part, taken) for part in value.split(","))


def _taken(name: str, value: str, taken: Sequence[str]) -> str:
    if value in taken:
        return value
    if (synonym := SYNONYMS.get(value)) in taken:
        return str(synonym)
    raise BadQuestionError(f"{name}: {value[:50]!r} is not one of {', '.join(taken)}")


def time_parameter(name: str, value: str) -> int:
    """Return the time of a parameter, in epoch ms.

    Raises:
        BadQuestionError: The text is not a time.
    """
    try:
        time_ms = parse_time(value, now_ms())
    except ValueError as error:
        raise BadQuestionError(f"{name}: {error}") from error
    # Beyond it files cannot be compared with a time: Arrow's nanoseconds end in 2262.
    if not 0 <= time_ms <= LATEST_MS:
        raise BadQuestionError(f"{name}: {value[:50]!r} is not a time from 1970 to 2100")
    return time_ms


def _condition(listing: Listing, chosen: Mapping[str, str]) -> tuple[str, tuple[object, ...]]:
    conditions: list[str] = []
    values: list[object] = []
    for name, value in chosen.items():
        if name in (SINCE, UNTIL, AT):
            continue
        searched = f"contains(lower(concat_ws(' ', {', '.join(listing.searched)})), lower(?))"
        wanted = value.split(",") if name in listing.values else [value]
        condition = searched if name == SEARCH else listing.filters[name]
        conditions.append(f"({' or '.join([condition] * len(wanted))})")
        values += wanted
    return " and ".join(conditions) or "true", tuple(values)


def write_cursor(sort: str, place: list[Any], shown: int = 0) -> str:
    """Encode the position of a row in an order as a text that is opaque to its readers.

    Args:
        place: The value of its expression and of each part of the key.
        shown: How many rows at this position were shown, if there are more of them.
    """
    return base64.urlsafe_b64encode(json.dumps([sort, *place, shown]).encode()).decode().rstrip("=")


def read_cursor(text: str, sort: str, keys: int) -> tuple[list[Any], int]:
    """Decode a cursor of this order: its position, and how many rows of this position were shown if there are more.

    Args:
        keys: The number of parts of a row's key.

    Raises:
        BadQuestionError: The text is not a cursor, or belongs to another order.
    """
    try:
        found = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, RecursionError, binascii.Error) as error:
        raise BadQuestionError(_BROKEN) from error
    is_fitting = isinstance(found, list) and len(found) == keys + 3 and found[0] == sort
    if not is_fitting or not all(isinstance(part, str | int) and not isinstance(part, bool) for part in found):
        raise BadQuestionError(_FOREIGN)
    _, *place, shown = found
    if not isinstance(shown, int) or not 0 <= shown <= MOST_SHOWN:
        raise BadQuestionError(_BROKEN)
    return place, shown


def plain_rows(columns: pa.Table) -> list[Row]:
    """Return rows as dicts, times in epoch milliseconds."""
    names, values = columns.column_names, []
    for column in columns.columns:
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())
        values.append(column.to_pylist())
    return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]
