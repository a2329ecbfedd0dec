"""Pieces of a listing: every row once in any order, and only the requested rows."""

from __future__ import annotations

import base64
from contextlib import suppress
from random import Random

import pytest

from bench.pages_tables import PagesFleet, write_tables
from dashboard.reading import listing_places
from dashboard.reading.listing import Listing
from dashboard.reading.listing_query import BadQuestionError, piece, read_cursor, write_cursor
from dashboard.reading.listings import FINDINGS, GROUPS, LISTINGS, REBALANCES
from dashboard.reading.questions import Reading
from streaming.settings.model import Dashboard
from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.schema import COUNT, LONG, TABLES, TEXT, TIME, TRUTH, Row, Table
from streaming.tables.writer import Mark
from tests.streaming.tables.journals import T0
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
    for order in listing.orders:
        rows, total = walked(many, listing, sign + order, 1_997)
        assert len(rows) == total
        assert len({str(row) for row in rows}) == len(rows)


def walked(reading: Reading, listing: Listing, sort: str, limit: int) -> tuple[list[Row], int]:
    """Return the rows of a listing, piece by piece, and how many each piece said that there are."""
    rows: list[Row] = []
    cursor, since = "", {"since": "0"} if listing.is_recent else {}
    while True:
        found = piece(reading, listing, since, sort=sort, limit=limit, cursor=cursor)
        rows += found.rows
        assert len(rows) <= found.total
        if found.next_cursor is None:
            return rows, found.total
        cursor = found.next_cursor


# Columns that the job always writes; any other may be null.
WRITTEN = {"cluster", "group_id", "topic", "queue_id", "member_id", "origin", "rebalance_id", "finding_id"}
WRITTEN |= {"annotation_id"}
TIMES_OF_KEYS = {"valid_from", "joined_at", "minute", "event_time"}


def sparse_rows(table: Table, random: Random) -> list[Row]:
    """Return rows in which all that may be null is null now and then, and few values come again and again."""
    nullable = {"rejected_events": {"cluster", "group_id"}, "findings": {"group_id"}, "annotations": {"cluster"}}
    written = WRITTEN - nullable.get(table.name, set())
    values = {TEXT: ("", "a", "日"), COUNT: (0, 1), LONG: (0, 7), TRUTH: (True, False), TIME: (T0, T0 + 1)}
    rows = []
    for number in range(13):
        row: Row = {}
        for column in table.columns:
            if column.name in TIMES_OF_KEYS:
                row[column.name] = T0 + number // (2 if column.name == "event_time" else 1)
            elif column.name in written:
                row[column.name] = number if column.type == LONG else f"{column.name}{number % 2}"
            elif column.type in values:
                row[column.name] = random.choice((None, None, *values[column.type]))
            else:
                row[column.name] = None
        if table.key in (
            ("rebalance_id",),
            ("finding_id",),
            ("annotation_id",),
            ("episode_id",),
            ("cluster", "group_id"),
        ):
            row[table.key[-1]] = f"{table.key[-1]}{number}"
        rows.append(row)
    return rows


@pytest.fixture(scope="module")
def sparse(tmp_path_factory: pytest.TempPathFactory, settings: Dashboard) -> Reading:
    """Tables with nulls, equal values, and in ``rejected_events`` rows that are equal or differ in one column alone."""
    root, random = tmp_path_factory.mktemp("sparse"), Random(7)
    for name, table in TABLES.items():
        rows = sparse_rows(table, random)
        if name == "rejected_events":
            rows += 3 * rows[:3]
            rows += [{**rows[0], "detail": f"d{number}"} for number in range(5)]
            rows += [dict.fromkeys(table.names)] * 4
        DeltaRsTable(root, table).append(to_arrow(table, rows), Mark("job", 1))
    return Reading.of(root, settings)


# What is advised is no table: it is judged from the rows of a replay.
@pytest.mark.parametrize("name", sorted(LISTINGS.keys() - {"advice"}))
@pytest.mark.parametrize("sign", ["", "-"])
def test_cursors_lead_over_rows_with_nulls_and_over_equal_rows(
    sparse: Reading, monkeypatch: pytest.MonkeyPatch, name: str, sign: str
) -> None:
    listing = LISTINGS[name]
    for number, order in enumerate(listing.orders):
        # Each order one way as of a large table, the other way as of a small one: that they give the same is elsewhere.
        monkeypatch.setattr(listing_places, "LARGE_ROWS", (0, 10**9)[(number + len(sign)) % 2])
        whole, total = walked(sparse, listing, sign + order, 1_000)
        assert len(whole) == total > 12
        for limit in (1, 3) if name == "rejected-events" else (4,):
            rows, counted = walked(sparse, listing, sign + order, limit)
            assert counted == len(whole)
            assert [str(row) for row in rows] == [str(row) for row in whole], (order, limit)


def test_equal_rows_that_were_removed_hide_no_others(sparse: Reading) -> None:
    listing = LISTINGS["rejected-events"]
    whole, _ = walked(sparse, listing, "-seen_at", 1_000)
    first = piece(sparse, listing, {}, limit=3)
    place, _ = read_cursor(first.next_cursor or "", "-seen_at", len(listing.key))
    # The cursor claims that more rows were shown of this place than exist now.
    cursor = write_cursor("-seen_at", place, 1_000)
    following = piece(sparse, listing, {}, limit=1_000, cursor=cursor).rows
    assert following == whole[len(whole) - len(following) :]
    assert len(following) >= len(whole) - 3 - 4


def test_rebalances_come_newest_first(reading: Reading) -> None:
    found = piece(reading, REBALANCES, {}, limit=10)
    assert [row["rebalance_id"] for row in found.rows] == [THIRD, SECOND, FIRST]
    assert (found.total, found.next_cursor) == (3, None)


@pytest.mark.parametrize("offset", range(5))
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_the_total_is_of_all_rows_however_many_were_skipped(reading: Reading, offset: int, limit: int) -> None:
    found = piece(reading, REBALANCES, {}, limit=limit, offset=offset)
    assert [row["rebalance_id"] for row in found.rows] == [THIRD, SECOND, FIRST][offset : offset + limit]
    assert found.total == 3


def test_filters_and_search_hold_together(reading: Reading) -> None:
    assert [row["rebalance_id"] for row in piece(reading, REBALANCES, {"trigger": "member_joined"}, limit=10).rows] == [
        SECOND
    ]
    assert piece(reading, GROUPS, {"q": "ORD", "cluster": "c1"}, limit=10).total == 1
    assert piece(reading, GROUPS, {"q": "ORD", "cluster": "c2"}, limit=10).total == 0
    assert piece(reading, FINDINGS, {"open": "no"}, limit=10).total == 0


@pytest.mark.parametrize(
    "requested",
    [
        {"colour": "red"},
        {"since": "noon"},
        {"since": "1960-01-01"},
        {"since": "²"},
        {"until": "9" * 20},
        {"since": "4102444800001"},
        {"until": "9223372036855"},
        {"until": "253402300800000"},
        {"group_id or 1=1 --": "x"},
    ],
)
def test_unknown_parameters_are_refused(reading: Reading, requested: dict[str, str]) -> None:
    with pytest.raises(BadQuestionError):
        piece(reading, REBALANCES, requested, limit=10)


@pytest.mark.parametrize("sort", ["colour", "--members", "cluster; drop table groups"])
def test_an_unknown_order_is_refused(reading: Reading, sort: str) -> None:
    with pytest.raises(BadQuestionError):
        piece(reading, GROUPS, {}, sort=sort, limit=10)


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "é", "....", "\U0001f600"),
        write_cursor("-members", ["a", "b"]),
        *(write_cursor("members", [part, "b"]) for part in ([], {}, None, True, 1.5)),
        *(write_cursor("members", ["a", "b"], shown) for shown in (-1, 10**30)),
        *(base64.urlsafe_b64encode(text).decode() for text in (b"[" * 37_000, b'{"a":' * 7_000, b"[1" + b"0" * 9_000)),
    ],
)
def test_a_cursor_of_another_question_is_refused_with_what_to_send(text: str) -> None:
    with pytest.raises(BadQuestionError, match=r"cursor: .+; send .+ of (an|the) answer"):
        read_cursor(text, "members", 1)


def test_a_cursor_is_read_as_it_was_written() -> None:
    assert read_cursor(write_cursor("members", [3, "日本", "\0"]), "members", 2) == ([3, "日本", "\0"], 0)
    assert read_cursor(write_cursor("members", ["a", "b"], 2), "members", 1) == (["a", "b"], 2)


@pytest.mark.parametrize("name", LISTINGS)
@pytest.mark.parametrize("part", ["a", "\0", "\ud800", 1, -1, 2**64 - 1, 10**30, 10**400])
def test_a_cursor_with_values_of_other_columns_is_refused_or_finds_rows(
    many: Reading, name: str, part: str | int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing_places, "LARGE_ROWS", 0)
    listing = LISTINGS[name]
    for order in listing.orders:
        cursor = write_cursor(order, [part] * (1 + len(listing.key)))
        with suppress(BadQuestionError):
            piece(many, listing, {}, sort=order, limit=5, cursor=cursor)
