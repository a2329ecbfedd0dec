"""Each listing can be ordered by each of its orders and filtered by each of its filters."""

from __future__ import annotations

import pytest

from dashboard.reading.listing_query import BadQuestionError, piece
from dashboard.reading.listings import GROUPS, LISTINGS, VALUES
from dashboard.reading.questions import Reading
from dashboard.reading.window import last_day
from streaming.tables.schema import TABLES
from streaming.views.reader import Within
from tests.streaming.tables.journals import T0
from tests.streaming.views.story import FIRST, SECOND, THIRD


@pytest.mark.parametrize("name", LISTINGS)
def test_every_order_and_filter_is_a_query(reading: Reading, name: str) -> None:
    listing = LISTINGS[name]
    for order in listing.orders:
        ascending = piece(reading, listing, {}, sort=order, limit=100).rows
        descending = piece(reading, listing, {}, sort=f"-{order}", limit=100).rows
        assert len(ascending) == len(descending)
    total = piece(reading, listing, {}, limit=100).total
    for one in listing.filters:
        if one not in listing.values:
            assert piece(reading, listing, {one: "no such value"}, limit=100).rows == []
            continue
        with pytest.raises(
            BadQuestionError, match=rf"^{one}: 'no such value' is not one of {listing.values[one][0]}, "
        ):
            piece(reading, listing, {one: "no such value"}, limit=100)
        # A rebalance may have several causes.
        counts = [piece(reading, listing, {one: value}, limit=100).total for value in listing.values[one]]
        assert sum(counts) == total or one in ("trigger", "mode", "strategy_verdict")


@pytest.mark.parametrize(("text", "same"), [("true", "yes"), ("false", "no")])
def test_yes_is_true_and_no_is_false(reading: Reading, text: str, same: str) -> None:
    for name, one in (("findings", "open"), ("members", "open"), ("assignments", "open"), ("rebalances", "agrees")):
        found = [piece(reading, LISTINGS[name], {one: value}, limit=100) for value in (text, same)]
        assert found[0] == found[1]
    assert piece(reading, LISTINGS["findings"], {"open": "true"}, limit=100).total == 1


def test_filters_take_the_values_that_the_tables_may_have() -> None:
    columns = {column.name: column.comment for column in (*TABLES["groups"].columns, *TABLES["audits"].columns)}
    for name in ("state", "mode", "system", "strategy_verdict", "verdict"):
        assert [value for value in VALUES[name] if value not in columns[name]] == []


SPANS = {
    "assignments": ("topic", "queue_id", "member_id", "origin"),
    "members": ("member_id",),
    "findings": ("finding_id",),
    "rebalances": ("rebalance_id",),
}
A0, A1, B0, B1 = (("orders", queue, member, "computed") for member in "ab" for queue in (0, 1))
REPORTED, SHARED = ("orders", 1, "b", "reported"), ("events", -1, "pop", "computed")


@pytest.mark.parametrize(
    ("name", "since", "until", "expected"),
    [
        ("assignments", None, None, {A0, A1, B0, B1, REPORTED, SHARED}),
        # A span holds its begin, and not its end.
        ("assignments", None, 0, set()),
        ("assignments", None, 1, {A0, A1, SHARED}),
        ("assignments", None, 10_000, {A0, A1, SHARED}),
        ("assignments", None, 10_001, {A0, A1, B1, REPORTED, SHARED}),
        ("assignments", 9_999, 10_000, {A0, A1, SHARED}),
        ("assignments", 10_000, 10_001, {A0, B1, REPORTED, SHARED}),
        ("assignments", 10_000, None, {A0, B0, B1, REPORTED, SHARED}),
        # What is open has no end.
        ("assignments", 10**9, None, {B0, B1, REPORTED, SHARED}),
        ("members", 69_999, None, {("a",), ("b",)}),
        ("members", 70_000, None, {("b",)}),
        ("members", None, 10_000, {("a",)}),
        ("findings", None, 70_000, set()),
        ("findings", None, 70_001, {("f1",)}),
        ("findings", 10**9, None, {("f1",)}),
        ("rebalances", 0, 10_000, {(FIRST,)}),
        ("rebalances", 10_000, None, {(SECOND,), (THIRD,)}),
        ("rebalances", None, 10_000, {(FIRST,)}),
    ],
)
def test_rows_of_a_time_are_those_that_overlap_it(
    reading: Reading, name: str, since: int | None, until: int | None, expected: set[tuple[object, ...]]
) -> None:
    requested = {bound: str(T0 + ms) for bound, ms in (("since", since), ("until", until)) if ms is not None}
    found = piece(reading, LISTINGS[name], requested, limit=100)
    assert {tuple(row[column] for column in SPANS[name]) for row in found.rows} == expected
    assert found.total == len(expected)


def test_rows_of_now_have_no_times(reading: Reading) -> None:
    assert not GROUPS.times
    with pytest.raises(BadQuestionError, match=r"groups does not take 'since'; it takes cluster, .*, q$"):
        piece(reading, GROUPS, {"since": "0"}, limit=1)


@pytest.mark.parametrize("name", [name for name, one in LISTINGS.items() if one.is_recent])
def test_rows_are_of_the_last_day_unless_a_time_a_group_or_a_rebalance_is_given(reading: Reading, name: str) -> None:
    (column,) = LISTINGS[name].times

    def within(**requested: str) -> object:
        return LISTINGS[name].where(reading, requested)[column]

    assert within() == within(cluster="c1") == Within(last_day(reading).since_ms)
    assert within(since="5", until="9") == Within(5, 9)
    assert within(until="9") == Within(None, 9)
    assert within(group_id="orders") == within(rebalance_id="x") == Within()
