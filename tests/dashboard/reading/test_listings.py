"""Each listing can be ordered by each of its orders and filtered by each of its filters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from dashboard.reading.listing import VALUES
from dashboard.reading.listing_query import BadQuestionError, piece
from dashboard.reading.listings import GROUPS, LISTINGS
from dashboard.reading.questions import Reading
from dashboard.reading.window import last_day
from streaming.settings.model import Dashboard
from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.schema import TABLES
from streaming.tables.writer import Mark
from streaming.terminal.format import time_text
from streaming.views.group_state_texts import TABLE_STATES
from streaming.views.reader import Within
from tests.streaming.tables.journals import T0
from tests.streaming.views.story import FIRST, SECOND, THIRD


@pytest.fixture(scope="module")
def whole(whole_tables: Path, settings: Dashboard) -> Reading:
    return Reading.of(whole_tables, settings)


@pytest.mark.parametrize("name", LISTINGS)
def test_every_order_has_its_reverse(whole: Reading, name: str) -> None:
    listing = LISTINGS[name]
    total = piece(whole, listing, {}, limit=100).total
    for order in listing.orders:
        ascending = piece(whole, listing, {}, sort=order, limit=100).rows
        descending = piece(whole, listing, {}, sort=f"-{order}", limit=100).rows
        assert sorted(map(str, ascending)) == sorted(map(str, descending))
        assert len(ascending) == total > 1
        # Rows of one value stay in the order of their keys; nothing is as much as 0.
        runs = [[value for value, _ in groupby(row[order] or None for row in rows)] for rows in (ascending, descending)]
        assert runs[0] == runs[1][::-1]
        assert len(runs[0]) == len(set(runs[0]))


def values_of(row: Mapping[str, Any], name: str, end: str) -> set[str | None]:
    """Return the values of a filter that a row has."""
    match name:
        case "trigger":  # a rebalance may have several causes
            return {row["trigger"], *(cause["kind"] for cause in row["triggers"] or ())}
        case "state":  # or its coordinator's
            return {row["state"], row["coordinator_state"]}
        case "agrees":
            return {{True: "true", False: "false", None: "unknown"}[row["agrees"]]}
        case "open":
            return {"yes" if row[end] is None else "no"}
        case _:  # Null, as for a group without a verdict, is not one of the values.
            return {row[name]}


@pytest.mark.parametrize("name", LISTINGS)
def test_every_filter_chooses_the_rows_that_have_its_value(whole: Reading, name: str) -> None:
    listing = LISTINGS[name]
    rows = piece(whole, listing, {}, limit=100).rows
    for filter_name in listing.filters:
        if filter_name not in listing.values:
            assert piece(whole, listing, {filter_name: "no such value"}, limit=100).rows == []
            continue
        with pytest.raises(
            BadQuestionError, match=rf"^{filter_name}: 'no such value' is not one of {listing.values[filter_name][0]}, "
        ):
            piece(whole, listing, {filter_name: "no such value"}, limit=100)
        end = listing.times[-1] if listing.times else ""
        for value in listing.values[filter_name]:
            found = piece(whole, listing, {filter_name: value}, limit=100)
            expected = [row for row in rows if value in values_of(row, filter_name, end)]
            assert sorted(map(str, found.rows)) == sorted(map(str, expected)), (filter_name, value)
            assert found.total == len(expected)


@pytest.mark.parametrize(("text", "same"), [("true", "yes"), ("false", "no")])
def test_yes_is_true_and_no_is_false(reading: Reading, text: str, same: str) -> None:
    for name, filter_name in (
        ("findings", "open"),
        ("members", "open"),
        ("assignments", "open"),
        ("rebalances", "agrees"),
    ):
        found = [piece(reading, LISTINGS[name], {filter_name: value}, limit=100) for value in (text, same)]
        assert found[0] == found[1]
    assert piece(reading, LISTINGS["findings"], {"open": "true"}, limit=100).total == 1


def test_filters_take_the_values_that_the_tables_may_have() -> None:
    columns = {column.name: column.comment for column in (*TABLES["groups"].columns, *TABLES["audits"].columns)}
    for name in ("state", "mode", "system", "strategy_verdict", "verdict"):
        values = TABLE_STATES if name == "state" else VALUES[name]
        assert [value for value in values if value not in columns[name]] == []


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
        # Open rows have no end.
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
def test_rows_of_a_span_of_time_overlap_it(
    reading: Reading, name: str, since: int | None, until: int | None, expected: set[tuple[object, ...]]
) -> None:
    requested = {bound: str(T0 + ms) for bound, ms in (("since", since), ("until", until)) if ms is not None}
    found = piece(reading, LISTINGS[name], requested, limit=100)
    assert {tuple(row[column] for column in SPANS[name]) for row in found.rows} == expected
    assert found.total == len(expected)


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({"at": 9_999}, {A0, A1, SHARED}),
        ({"at": 10_000}, {A0, B1, REPORTED, SHARED}),
        ({"at": 70_000}, {B0, B1, REPORTED, SHARED}),
        ({"at": -1}, set()),
        # With a span of time, rows count that were open at the time and overlap the span.
        ({"at": 10_000, "since": 70_000}, {B1, REPORTED, SHARED}),
        ({"at": 10_000, "since": 0, "until": 10_001}, {A0, B1, REPORTED, SHARED}),
        ({"at": 10_000, "until": 10_000}, {A0, SHARED}),
    ],
)
def test_spans_can_be_filtered_by_a_time_at_which_they_are_open(
    reading: Reading, chosen: dict[str, int], expected: set[tuple[object, ...]]
) -> None:
    requested = {name: str(T0 + ms) for name, ms in chosen.items()}
    found = piece(reading, LISTINGS["assignments"], requested, limit=100)
    assert {tuple(row[column] for column in SPANS["assignments"]) for row in found.rows} == expected
    assert "at" not in LISTINGS["rebalances"].parameters


def test_several_of_a_few_values_may_be_chosen(reading: Reading) -> None:
    names = [
        {row["group_id"] for row in piece(reading, GROUPS, {"health": health}, limit=9).rows}
        for health in ("warning", "ok", "ok,warning", "critical,unknown")
    ]
    assert names == [{"orders"}, {"popping", "twin"}, {"orders", "popping", "twin"}, set()]
    with pytest.raises(BadQuestionError, match=r"^health: 'fine' is not one of critical, "):
        piece(reading, GROUPS, {"health": "ok,fine"}, limit=1)


def test_a_kind_of_findings_is_no_part_of_another(reading: Reading) -> None:
    assert piece(reading, GROUPS, {"kind": "expected_differs"}, limit=1).total == 1
    assert piece(reading, GROUPS, {"kind": "expected"}, limit=1).total == 0


def test_open_findings_come_first_then_the_gravest_then_the_newest(tmp_path: Path, settings: Dashboard) -> None:
    severities = ("info", "critical", "warning", "critical", "critical", "critical")
    opened, closed = (9, 1, 9, 2, 2, 9), (None, None, None, None, None, 10)
    columns = zip("abcedf", severities, opened, closed, strict=True)
    rows = [dict(zip(("finding_id", "severity", "opened_at", "closed_at"), row, strict=True)) for row in columns]
    DeltaRsTable(tmp_path, TABLES["findings"]).append(to_arrow(TABLES["findings"], rows), Mark("job", 0))
    found = piece(Reading.of(tmp_path, settings), LISTINGS["findings"], {}, limit=9).rows
    assert [row["finding_id"] for row in found] == ["d", "e", "b", "c", "a", "f"]


def test_findings_that_no_job_can_write_are_found_by_cluster_and_time(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = {"finding_id": "x", "cluster": "c1, c9", "severity": "critical", "kind": "job_silent", "opened_at": T0 + 5}
    row = dict.fromkeys(TABLES["findings"].names) | lost
    listing = replace(LISTINGS["findings"], unwritten=lambda _: [row])

    def found(**chosen: str) -> bool:
        return "x" in {finding["finding_id"] for finding in piece(reading, listing, chosen, limit=9).rows}

    assert [found(cluster=name) for name in ("c1", "c9", "c", "c1, c9")] == [True, True, False, False]
    assert [found(until=time_text(T0 + ms)) for ms in (5, 6)] == [False, True]
    assert [found(at=time_text(T0 + ms)) for ms in (4, 5, 10**9)] == [False, True, True]


def test_rows_of_now_have_no_times(reading: Reading) -> None:
    assert not GROUPS.times
    with pytest.raises(BadQuestionError, match=r"groups does not take 'since'; it takes cluster, .*, q$"):
        piece(reading, GROUPS, {"since": "0"}, limit=1)


@pytest.mark.parametrize("name", [name for name, listing in LISTINGS.items() if listing.is_recent])
def test_rows_are_of_the_last_day_unless_a_time_a_group_or_a_rebalance_is_given(reading: Reading, name: str) -> None:
    (column,) = LISTINGS[name].times

    def within(**requested: str) -> object:
        return LISTINGS[name].where(reading, requested)[column]

    assert within() == within(cluster="c1") == Within(last_day(reading).since_ms)
    assert within(since="5", until="9") == Within(5, 9)
    assert within(until="9") == Within(None, 9)
    assert within(group_id="orders") == within(rebalance_id="x") == Within()
