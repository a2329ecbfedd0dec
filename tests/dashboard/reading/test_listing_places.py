"""A piece of a large listing has the same rows as if the whole table were read, and reads much less."""

from __future__ import annotations

import random
from dataclasses import replace

import pyarrow as pa
import pytest

from bench.pages_tables import HOUR_MS, PagesFleet, write_tables
from dashboard.reading import listing_places
from dashboard.reading.cache import ResultCache
from dashboard.reading.listing import Listing
from dashboard.reading.listing_query import Piece, piece, plain_rows
from dashboard.reading.listings import ASSIGNMENTS, LISTINGS, MEMBERS, REBALANCES
from dashboard.reading.questions import Reading
from streaming.settings.model import Dashboard
from streaming.tables.schema import TABLES

FLEET = PagesFleet(groups=300, assignments=35_000, rebalances=500, crowded_spans=0)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory, settings: Dashboard) -> Reading:
    root = tmp_path_factory.mktemp("many")
    write_tables(FLEET, root)
    return Reading.of(root, settings)


@pytest.fixture
def rows_read(many: Reading, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Collect the rows and columns of each reading of a table."""
    found: list[tuple[int, int]] = []
    read = many.tables.read

    def counted(*arguments: object, **options: object) -> pa.Table:
        table = read(*arguments, **options)  # type: ignore[arg-type]
        found.append((table.num_rows, table.num_columns))
        return table

    monkeypatch.setattr(many.tables, "read", counted)
    return found


def both(
    many: Reading, monkeypatch: pytest.MonkeyPatch, listing: Listing, requested: dict[str, str], **options: object
) -> tuple[Piece, Piece]:
    """Return a piece as it is found in a large table, and in a small one; of its rows what their order rests on."""
    found = []
    for large in (0, 10**9):
        monkeypatch.setattr(listing_places, "LARGE_ROWS", large)
        found_piece = piece(many, listing, requested, **options)  # type: ignore[arg-type]
        names = TABLES[listing.table].key if listing.table else listing.columns
        found.append(found_piece._replace(rows=[{name: row[name] for name in names} for row in found_piece.rows]))
    return found[0], found[1]


@pytest.mark.parametrize("name", LISTINGS)
@pytest.mark.parametrize("sign", ["", "-"])
def test_cursors_and_pages_lead_to_the_same_rows(
    many: Reading, monkeypatch: pytest.MonkeyPatch, name: str, sign: str
) -> None:
    listing, chosen = LISTINGS[name], random.Random(name + sign)
    filters = {"rebalances": {"trigger": "member_left"}, "assignments": {"open": "yes"}}
    for number, order in enumerate([*listing.orders][:4]):
        # Each order one way with a filter, the other way without.
        requested = ({}, filters.get(name, {"cluster": "kafka-prod"}))[(number + len(sign)) % 2]
        cursor = ""
        for _ in range(3):
            limit = chosen.choice([1, 7, 100, 1_000])
            narrowed, other = both(many, monkeypatch, listing, requested, sort=sign + order, limit=limit, cursor=cursor)
            assert narrowed == other, (order, requested)
            cursor = narrowed.next_cursor or ""
            if not cursor:
                break
        offset = chosen.randrange(narrowed.total + 2)
        first, second = both(many, monkeypatch, listing, requested, sort=sign + order, limit=100, offset=offset)
        assert first == second


def test_times_between_two_bounds_are_kept_when_the_piece_narrows_them(
    many: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    until = FLEET.until_ms - HOUR_MS
    requested = {"since": str(until - 3 * HOUR_MS), "until": str(until)}
    narrowed, other = both(many, monkeypatch, REBALANCES, requested, limit=10, offset=3)
    assert narrowed == other
    assert 10 < narrowed.total < FLEET.rebalances // 2


@pytest.mark.parametrize("listing", [ASSIGNMENTS, MEMBERS], ids=lambda listing: listing.name)
def test_spans_that_overlap_a_time_are_the_same_rows(
    many: Reading, monkeypatch: pytest.MonkeyPatch, listing: Listing
) -> None:
    since, until = FLEET.until_ms - 9 * HOUR_MS, FLEET.until_ms - 8 * HOUR_MS
    requested, cursor = {"since": str(since), "until": str(until)}, ""
    begin, end = listing.times
    spans = plain_rows(many.tables.read(listing.table, columns=[begin, end]))
    overlapping = [span for span in spans if span[begin] < until and (span[end] is None or span[end] > since)]
    assert 1_000 < len(overlapping) < len(spans)
    for sort in ("group_id", "-cluster"):
        for limit in (100, 900):
            narrowed, other = both(many, monkeypatch, listing, requested, sort=sort, limit=limit, cursor=cursor)
            assert narrowed == other
            assert narrowed.total == len(overlapping)
            cursor = narrowed.next_cursor or ""
        cursor = ""


def test_the_second_piece_reads_the_rows_of_a_few_groups(many: Reading, rows_read: list[tuple[int, int]]) -> None:
    fresh = replace(many, cache=ResultCache(1 << 20))
    first = piece(fresh, ASSIGNMENTS, {}, limit=100)
    assert first.total == FLEET.assignments
    assert first.next_cursor is not None
    # Where the rows are is counted once, by few columns.
    assert rows_read[0] == (FLEET.assignments, 2)
    rows_read.clear()
    piece(fresh, ASSIGNMENTS, {}, limit=100, cursor=first.next_cursor)
    (read,) = rows_read
    assert read[0] < FLEET.assignments // 10


def test_a_table_that_changes_after_it_was_counted_is_read_as_a_whole(
    many: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = piece(many, ASSIGNMENTS, {}, limit=100)
    bounds = listing_places._bounds
    monkeypatch.setattr(listing_places, "_bounds", lambda *_: bounds(*_) | {"group_id": "gone"})
    assert piece(many, ASSIGNMENTS, {}, limit=100) == expected


def test_only_orders_of_the_files_are_used() -> None:
    leading = {
        (listing.name, order): listing_places._leading(listing, expression)
        for listing in LISTINGS.values()
        for order, expression in listing.orders.items()
    }
    assert leading["assignments", "group_id"] == ("group_id", "cluster")
    assert leading["assignments", "cluster"] == ("cluster", "group_id")
    assert leading["assignments", "valid_from"] == leading["groups", "cluster"] == ()
    assert leading["rebalances", "event_time"] == ("event_time",)
    assert leading["rejected-events", "seen_at"] == ("seen_at",)
