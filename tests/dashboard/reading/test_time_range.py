"""A range of time: its bins, the span before it, and what it counts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from dashboard.app import create_app
from dashboard.pages.page_addresses import address, keeping
from dashboard.pages.page_range import range_of
from dashboard.reading.activity import bins, fleet, groups_in
from dashboard.reading.listing_query import BadQuestionError, plain_rows
from dashboard.reading.questions import Reading
from dashboard.reading.time_range import MOST_BINS, PRESETS, TimeRange
from dashboard.reading.window import DAY_MS, HOUR_MS, MINUTE_MS
from streaming.settings.model import Dashboard
from tests.browser.day_tables import T0, rebalance, write_rows
from tests.streaming.tables.signs import leave_recording_sign

GROUP = {"cluster": "c", "system": "kafka", "state": "stable"}
DURING, BEFORE = TimeRange(T0, T0 + HOUR_MS), TimeRange(T0 - HOUR_MS, T0)


@pytest.fixture
def busy(tmp_path: Path, settings: Dashboard) -> Reading:
    """Four groups: one rebalanced six times in a minute, one as often in an hour, one before, one never."""
    times = {
        "burst": [T0 + number * 1_000 for number in range(6)],
        "steady": [T0 + number * 10 * MINUTE_MS for number in range(6)],
        "former": [T0 - MINUTE_MS, T0 - 2 * MINUTE_MS, T0 - 90 * MINUTE_MS],
        "quiet": [],
    }
    write_rows(tmp_path, "groups", [GROUP | {"group_id": name} for name in times])
    rows = [rebalance("c", name, f"{name}-{at}", at, "m") for name, all_times in times.items() for at in all_times]
    write_rows(tmp_path, "rebalances", rows)
    unread = {"finding_id": "f", "kind": "queues_unread", "severity": "warning", "message": "m", "advice": "a"}
    queue = {"topic": "t", "broker": None, "queue_id": 0, "member_id": None, "reason": None, "owners": []}
    unread |= {"cluster": "c", "group_id": "quiet", "queues": [queue, queue | {"queue_id": 1}], "queues_left_out": 3}
    unread |= {"evidence": [], "opened_at": T0 + 5 * MINUTE_MS, "closed_at": T0 + 9 * MINUTE_MS}
    write_rows(tmp_path, "findings", [unread])
    leave_recording_sign(tmp_path, {"c"}, {"c": T0 + 50 * MINUTE_MS})
    return Reading.of(tmp_path, settings)


@pytest.mark.parametrize("length_ms", [1_000, 61_000, *PRESETS.values(), 400 * 24 * HOUR_MS, 3_700 * 24 * HOUR_MS])
def test_bins_cover_a_range_whatever_its_length(length_ms: int) -> None:
    span = TimeRange(T0 + 17, T0 + 17 + length_ms)
    assert span.first_bin_ms <= span.since_ms < span.first_bin_ms + span.bin_ms
    assert span.bins[-1] < span.until_ms <= span.bins[-1] + span.bin_ms
    assert len(span.bins) <= MOST_BINS + 1
    assert (span.earlier.until_ms, span.earlier.span_ms) == (span.since_ms, span.span_ms)


def test_bins_hold_each_rebalance_of_the_range_once(busy: Reading) -> None:
    rows = plain_rows(bins(busy, DURING))
    assert sum(row["rebalances"] for row in rows) == 12
    assert all(row["hour"] in DURING.bins for row in rows)
    assert sum(row["rebalances"] for row in plain_rows(bins(busy, BEFORE))) == 2


def test_a_group_that_rebalances_again_and_again_is_not_ok(busy: Reading) -> None:
    found = {row["group_id"]: row for row in plain_rows(groups_in(busy, DURING))}
    names = ("condition", "rebalances_range", "rebalances_earlier")
    assert {group: tuple(row[name] for name in names) for group, row in found.items()} == {
        "burst": ("restless", 6, 0),
        "steady": ("ok", 6, 0),
        "former": ("ok", 0, 2),
        "quiet": ("ok", 0, 0),
    }


def test_a_span_before_anything_was_known_has_no_number(busy: Reading) -> None:
    # Nothing is older than 90 minutes before the range, which is in the middle of the span before this one.
    assert {row["rebalances_earlier"] for row in plain_rows(groups_in(busy, BEFORE))} == {None}


@pytest.mark.parametrize("days", [-2, 2])
def test_a_range_of_which_nothing_is_known_has_no_number(busy: Reading, settings: Dashboard, days: int) -> None:
    span = TimeRange(T0 + days * DAY_MS, T0 + days * DAY_MS + HOUR_MS)
    assert {row["rebalances_range"] for row in plain_rows(groups_in(busy, span))} == {None}
    with TestClient(create_app(busy.tables.root, settings)) as client:
        of_range = {"from": span.since_ms, "to": span.until_ms}
        text = client.get("/group", params={"cluster": "c", "group": "steady", **of_range}).text
        first = client.get("/", params=of_range).text
    assert "how many there are in this range is not wholly known" in text
    assert "0 rebalances in this range" not in first


def test_the_fleet_counts_queues_of_open_findings_and_not_where_nothing_was_known(busy: Reading) -> None:
    rows = plain_rows(fleet(busy, DURING))
    assert [row["hour"] for row in rows] == [*DURING.bins]
    unread = {row["hour"] - T0: row["unread_queues"] for row in rows if row["unread_queues"]}
    assert unread == {minute * MINUTE_MS: 5 for minute in (4, 6, 8)}
    assert sum(row["rebalances"] or 0 for row in rows) == 12
    # The recording ends ten minutes before the range.
    assert [row["hour"] - T0 for row in rows if row["rebalances"] is None] == [
        minute * MINUTE_MS for minute in range(52, 60, 2)
    ]


def test_an_address_names_a_preset_or_two_times(busy: Reading) -> None:
    assert range_of(busy, {}).is_chosen is False
    assert range_of(busy, {"range": "6h", "from": ""}).span_ms == 6 * HOUR_MS
    assert range_of(busy, {"from": "2026-01-01T00:00Z", "to": str(T0 + 5)}) == TimeRange(T0, T0 + 5)
    assert range_of(busy, {"to": str(T0)}).since_ms == T0 - 24 * HOUR_MS


@pytest.mark.parametrize(
    "parameters",
    [{"range": "2h"}, {"range": "1h", "to": "5m"}, {"from": "noon"}, {"from": str(T0), "to": str(T0)}, {"to": "0"}],
)
def test_an_address_without_a_span_is_refused(busy: Reading, parameters: Mapping[str, str]) -> None:
    with pytest.raises(BadQuestionError):
        range_of(busy, parameters)


def test_a_range_is_kept_in_addresses_of_pages_alone() -> None:
    with keeping({"range": "6h"}):
        assert address("/group", group="g") == "/group?group=g&range=6h"
        assert address("/group", group="g", range="1h") == "/group?group=g&range=1h"
        assert address("/api/v1/groups", group_id="g") == "/api/v1/groups?group_id=g"
    assert address("/group", group="g") == "/group?group=g"
