"""Each listing can be ordered by each of its orders and filtered by each of its filters."""

from __future__ import annotations

import pytest

from dashboard.reading.listing_query import piece
from dashboard.reading.listings import LISTINGS, time_span
from dashboard.reading.questions import Reading
from streaming.views.reader import Within


@pytest.mark.parametrize("name", LISTINGS)
def test_every_order_and_filter_is_a_query(reading: Reading, name: str) -> None:
    listing = LISTINGS[name]
    for order in listing.orders:
        ascending = piece(reading, listing, {}, sort=order, limit=100).rows
        descending = piece(reading, listing, {}, sort=f"-{order}", limit=100).rows
        assert len(ascending) == len(descending)
    for one in listing.filters:
        assert piece(reading, listing, {one: "no such value"}, limit=100).rows == []


def test_a_span_of_time_is_the_last_day_unless_it_is_given(reading: Reading) -> None:
    assert time_span(reading, {"since": "5", "until": "9"}) == Within(5, 9)
    assert time_span(reading, {}, is_bounded=False) == Within(None, None)
    bounded = time_span(reading, {})
    assert bounded.since_ms is not None
