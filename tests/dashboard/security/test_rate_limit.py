"""Addresses are limited one by one, and remembered within a bound."""

from __future__ import annotations

from dashboard.security.rate_limit import BURST, REMEMBERED_ADDRESSES, RateLimit


def test_an_address_gets_its_burst_and_then_its_rate() -> None:
    limit = RateLimit(2)
    assert [limit.allows("a", 0.0) for _ in range(2 * BURST + 1)] == [True] * 2 * BURST + [False]
    assert limit.allows("b", 0.0)
    assert [limit.allows("a", 0.5), limit.allows("a", 0.5)] == [True, False]
    assert sum(limit.allows("a", 1_000.0) for _ in range(100)) == 2 * BURST


def test_the_addresses_that_are_remembered_are_bounded() -> None:
    limit = RateLimit(1)
    for number in range(2 * REMEMBERED_ADDRESSES):
        limit.allows(str(number), 0.0)
    assert len(limit._buckets) == REMEMBERED_ADDRESSES
