"""What a column sorts by is an order of its listing."""

from __future__ import annotations

import pytest

from dashboard.pages import columns
from dashboard.reading import listings


@pytest.mark.parametrize(
    ("shown", "listing"),
    [
        (columns.GROUPS, listings.GROUPS),
        (columns.REBALANCES, listings.REBALANCES),
        (columns.FINDINGS, listings.FINDINGS),
        (columns.SESSIONS, listings.MEMBERS),
        (columns.REJECTED, listings.REJECTED),
    ],
)
def test_every_order_is_one_of_the_listing(shown: tuple[columns.Column, ...], listing: listings.Listing) -> None:
    assert {column.sort for column in shown if column.sort} <= set(listing.orders)
