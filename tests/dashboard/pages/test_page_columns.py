"""A column sorts by an order of its listing; columns without any known value are left out."""

from __future__ import annotations

import pytest

from dashboard.pages import page_columns
from dashboard.pages.overview_page import listing_in
from dashboard.reading import listings
from dashboard.reading.time_range import TimeRange


@pytest.mark.parametrize(
    ("shown", "listing"),
    [
        (page_columns.GROUPS, listing_in(TimeRange(0, 1))),
        (page_columns.REBALANCES, listings.REBALANCES),
        (page_columns.FINDINGS, listings.FINDINGS),
        (page_columns.SESSIONS, listings.MEMBERS),
        (page_columns.REJECTED, listings.REJECTED),
        (page_columns.ADVICE, listings.ADVICE),
    ],
)
def test_every_order_is_one_of_the_listing(
    shown: tuple[page_columns.PageColumn, ...], listing: listings.Listing
) -> None:
    assert {column.sort for column in shown if column.sort} <= set(listing.orders)


@pytest.mark.parametrize(
    ("row", "sort", "added"),
    [
        ({}, "", []),
        ({"repeated_messages": None, "waiting_messages": None}, "-queues_moved", []),
        ({"repeated_messages": 0}, "", ["Messages read twice"]),
        ({"repeated_estimated_messages": 3}, "", ["Messages read twice"]),
        ({"waiting_messages": 0}, "", ["Messages that waited"]),
        ({}, "-waiting_messages", ["Messages that waited"]),
    ],
)
def test_costs_have_columns_where_a_row_has_them(row: dict[str, object], sort: str, added: list[str]) -> None:
    always = [column for column in page_columns.REBALANCES if not column.needs_any]
    shown = page_columns.filled_columns(page_columns.REBALANCES, [{}, row], sort)
    assert [column.title for column in shown if column not in always] == added
    assert [column for column in shown if column in always] == always
