"""Dashboard: a page of a listing: the request in the address, its rows, and the links around them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from dashboard.pages.page_addresses import API, RANGE, address
from dashboard.pages.page_columns import PageColumn
from dashboard.reading.listing import SINCE, UNTIL, Listing
from dashboard.reading.listing_query import BadQuestionError, piece, refuse_others
from dashboard.reading.listings import LISTINGS
from dashboard.reading.questions import Reading
from dashboard.reading.time_range import TimeRange

PAGE_ROWS = 100
OWN = ("sort", "page")


class Choice(NamedTuple):
    """A filter with its values; ``any_title`` is the title of choosing none."""

    name: str
    title: str
    values: Sequence[str]
    any_title: str


class Ordering(NamedTuple):
    """The parameters of an address other than filters."""

    sort: str
    page: int


def parameters_of(parameters: Mapping[str, str], listing: Listing) -> tuple[dict[str, str], Ordering]:
    """Split the parameters of an address into filters and ordering; parameters without a value are left out.

    Raises:
        BadQuestionError: A parameter is unknown.
    """
    refuse_others(parameters, (*listing.parameters, *OWN, *RANGE), "this page")
    page = parameters.get("page") or "1"
    if not page.isascii() or not page.isdecimal() or len(page) > 7 or not 1 <= int(page) <= 1_000_000:
        raise BadQuestionError(f"page: {page[:50]!r} is no number of a page")
    chosen = {name: value for name, value in parameters.items() if value and name not in (*OWN, *RANGE)}
    return chosen, Ordering(parameters.get("sort", ""), int(page))


def listing_page(
    reading: Reading,
    listing: Listing,
    columns: Sequence[PageColumn],
    path: str,
    parameters: Mapping[str, str],
    choices: Iterable[Choice] = (),
    defaults: Mapping[str, str] | None = None,
    span: TimeRange | None = None,
) -> dict[str, Any]:
    """Return the values for the template of a listing.

    Args:
        defaults: Filters that apply unless the address has them.
        span: The range of the page. If it is chosen, it selects rows, unless the address has ``since`` or ``until``.

    Raises:
        BadQuestionError: The address requests something that does not exist.
    """
    chosen, ordering = parameters_of(parameters, listing)
    sort = ordering.sort or listing.default
    # These filters take one of a few values; a cluster or group may have the same name.
    effective = {
        name: value
        for name, value in {**(defaults or {}), **chosen}.items()
        if value != "any" or name not in listing.values
    }
    is_timed = bool(listing.times) and not effective.keys() & {SINCE, UNTIL}
    if span is not None and span.is_chosen and is_timed:
        effective |= {SINCE: str(span.since_ms), UNTIL: str(span.until_ms)}
    is_of_one = bool(effective.keys() & {"group_id", "rebalance_id"})
    offset = (ordering.page - 1) * PAGE_ROWS
    found = piece(reading, listing, effective, sort=sort, limit=PAGE_ROWS, offset=offset)
    pages = max(1, -(-found.total // PAGE_ROWS))
    here: dict[str, object] = {**chosen, "sort": ordering.sort}
    last = offset + len(found.rows)
    # The API has fewer orders than the first page, and another default.
    published = LISTINGS[listing.name]
    is_same_order = sort.removeprefix("-") in published.orders and (
        ordering.sort or listing.default == published.default
    )
    cursor = ""
    if last > reading.max_rows and is_same_order:
        # The rows from the first on would end before those that are shown.
        cursor = piece(reading, listing, effective, sort=sort, limit=1, offset=offset - 1).next_cursor or ""
    order = ordering.sort if is_same_order else ""
    data = address(f"{API}{listing.name}", effective, sort=order, limit=reading.max_rows, cursor=cursor)
    return {
        "path": path,
        # Unless a range is chosen, only the newest lists end at the default range.
        "is_of_all_times": not (listing.is_recent and is_timed and not is_of_one) and bool(listing.times),
        "columns": columns,
        "rows": found.rows,
        "total": found.total,
        "chosen": {**(defaults or {}), **chosen},
        "here": here,
        "sort": sort,
        "choices": list(choices),
        "page": ordering.page,
        "pages": pages,
        "data": data,
        "data_note": _data_note(found.total, reading.max_rows, offset if cursor else 0),
        "first": offset + 1 if found.rows else 0,
        "last": last,
    }


def _data_note(total: int, most: int, before: int) -> str:
    """Return which of the rows a download has, if it does not have all."""
    if total - before <= most and not before:
        return ""
    return f"rows {before + 1:,} to {min(before + most, total):,}:"
