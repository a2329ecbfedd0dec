"""Pieces of a listing: every row once, whatever the order, and nothing but what is asked for."""

from __future__ import annotations

from contextlib import suppress

import pytest

from bench.pages_tables import PagesFleet, write_tables
from dashboard.reading import listing_places
from dashboard.reading.listing_query import BadQuestionError, piece, read_cursor, write_cursor
from dashboard.reading.listings import FINDINGS, GROUPS, LISTINGS, REBALANCES
from dashboard.reading.questions import Reading
from streaming.settings.model import Dashboard
from tests.streaming.views.story import FIRST, SECOND, THIRD


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory, settings: Dashboard) -> Reading:
    root = tmp_path_factory.mktemp("many")
    write_tables(PagesFleet(groups=60, assignments=6_000, rebalances=500, crowded_spans=0), root)
    return Reading.of(root, settings)


@pytest.mark.parametrize("name", LISTINGS)
@pytest.mark.parametrize("sign", ["", "-"])
def test_cursors_lead_over_every_row_once(many: Reading, name: str, sign: str) -> None:
    listing = LISTINGS[name]
    for order in [*listing.orders][:3]:
        seen, cursor = [], ""
        while True:
            found = piece(many, listing, {}, sort=sign + order, limit=997, cursor=cursor)
            seen += found.rows
            if found.next_cursor is None:
                break
            cursor = found.next_cursor
        assert len(seen) == found.total
        assert len({str(row) for row in seen}) == len(seen)


def test_rebalances_come_newest_first(reading: Reading) -> None:
    found = piece(reading, REBALANCES, {}, limit=10)
    assert [row["rebalance_id"] for row in found.rows] == [THIRD, SECOND, FIRST]
    assert (found.total, found.next_cursor) == (3, None)


def test_filters_and_search_hold_together(reading: Reading) -> None:
    assert [row["rebalance_id"] for row in piece(reading, REBALANCES, {"trigger": "member_joined"}, limit=10).rows] == [
        SECOND
    ]
    assert piece(reading, GROUPS, {"q": "ORD", "cluster": "c1"}, limit=10).total == 1
    assert piece(reading, GROUPS, {"q": "ORD", "cluster": "c2"}, limit=10).total == 0
    assert piece(reading, FINDINGS, {"open": "no"}, limit=10).total == 0


@pytest.mark.parametrize(
    "asked",
    [
        {"colour": "red"},
        {"since": "yesterday"},
        {"since": "²"},
        {"until": "9" * 20},
        {"since": "4102444800001"},
        {"until": "9223372036855"},
        {"until": "253402300800000"},
        {"group_id or 1=1 --": "x"},
    ],
)
def test_what_is_unknown_is_refused(reading: Reading, asked: dict[str, str]) -> None:
    with pytest.raises(BadQuestionError):
        piece(reading, REBALANCES, asked, limit=10)


@pytest.mark.parametrize("sort", ["colour", "--members", "cluster; drop table groups"])
def test_an_unknown_order_is_refused(reading: Reading, sort: str) -> None:
    with pytest.raises(BadQuestionError):
        piece(reading, GROUPS, {}, sort=sort, limit=10)


@pytest.mark.parametrize(
    "text", ["", "x", "é", write_cursor("-members", ["a", "b", 1]), write_cursor("members", [[], "b"])]
)
def test_a_cursor_of_another_question_is_refused(text: str) -> None:
    with pytest.raises(BadQuestionError):
        read_cursor(text, "members", 1)


def test_a_cursor_is_read_as_it_was_written() -> None:
    assert read_cursor(write_cursor("members", [3, "日本", "\0"]), "members", 2) == [3, "日本", "\0"]


@pytest.mark.parametrize("name", LISTINGS)
@pytest.mark.parametrize("part", ["a", "\0", 1, -1, 10**30, 10**400])
def test_a_cursor_with_values_of_other_columns_is_refused_or_finds_rows(
    many: Reading, name: str, part: str | int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing_places, "LARGE_ROWS", 0)
    listing = LISTINGS[name]
    for order in listing.orders:
        cursor = write_cursor(order, [part] * (1 + len(listing.key)))
        with suppress(BadQuestionError):
            piece(many, listing, {}, sort=order, limit=5, cursor=cursor)
