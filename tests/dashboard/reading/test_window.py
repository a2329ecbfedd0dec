"""The last day ends now, or with the last knowledge of any cluster."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from dashboard.reading import window as shown
from dashboard.reading.churn import churn
from dashboard.reading.known_time import newest_by_cluster
from dashboard.reading.listing_query import plain_rows
from dashboard.reading.overview import hours, overview
from dashboard.reading.questions import Reading
from dashboard.reading.window import DAY_MS, HOUR_MS, HOURS, MINUTE_MS, last_day, page_time, recent
from streaming.settings.model import Dashboard
from tests.browser.day_tables import rebalance, write_rows
from tests.streaming.tables.journals import T0
from tests.streaming.tables.signs import leave_living_sign

# In the middle of an hour and of a minute.
AT = T0 // HOUR_MS * HOUR_MS + 37 * MINUTE_MS + 23_456


def test_the_newest_time_of_a_cluster_is_that_of_its_last_change(reading: Reading) -> None:
    assert newest_by_cluster(reading)["c1"] == T0 + 70_000


@pytest.mark.parametrize("now", [AT, AT // HOUR_MS * HOUR_MS, AT // HOUR_MS * HOUR_MS - 1])
def test_live_tables_end_now(steady: Reading, now: int) -> None:
    now += HOUR_MS
    window = last_day(steady, now)
    assert (window.is_live, window.now_ms) == (True, now)
    assert now - DAY_MS - MINUTE_MS < window.since_ms <= now - DAY_MS
    assert window.first_hour_ms <= window.since_ms < window.first_hour_ms + HOUR_MS
    assert now < window.until_ms == window.first_hour_ms + HOURS * HOUR_MS


def test_a_recording_ends_with_its_newest_change(reading: Reading) -> None:
    window = last_day(reading, T0 + 30 * DAY_MS)
    assert not window.is_live
    assert window.now_ms == T0 + 70_000
    assert window.first_hour_ms < T0 + 70_000 < window.until_ms <= T0 + 70_000 + HOUR_MS


@pytest.fixture
def steady(tmp_path: Path, settings: Dashboard) -> Reading:
    """A group that rebalanced once, at ``AT``; another that changes two days later."""
    state = {"cluster": "c", "system": "kafka", "state": "stable"}
    groups = [("g", AT), ("later", AT + 2 * DAY_MS)]
    write_rows(tmp_path, "groups", [state | {"group_id": name, "last_rebalance_at": at} for name, at in groups])
    write_rows(tmp_path, "rebalances", [rebalance("c", "g", "r", AT, "m")])
    leave_living_sign(tmp_path, "c")
    return Reading.of(tmp_path, settings)


@pytest.mark.parametrize(
    ("passed", "expected"),
    [
        *((0, (1, 1)), (55 * MINUTE_MS, (1, 1)), (HOUR_MS - 1, (1, 1))),
        *((HOUR_MS, (0, 1)), (23 * HOUR_MS, (0, 1)), (DAY_MS - 1, (0, 1)), (DAY_MS, (0, 0))),
    ],
)
def test_the_last_hour_and_the_last_day_are_exact(
    steady: Reading, monkeypatch: pytest.MonkeyPatch, passed: int, expected: tuple[int, int]
) -> None:
    # A result kept at an earlier time does not count.
    for now in (AT, AT + passed):
        monkeypatch.setattr(shown, "now_ms", lambda now=now: now)
        row = next(row for row in plain_rows(overview(steady)) if row["group_id"] == "g")
    assert (row["rebalances_hour"], row["rebalances_day"]) == expected
    assert sum(hour["rebalances"] for hour in plain_rows(churn(steady))) == expected[1]


def test_results_are_kept_until_a_rebalance_is_recent_no_longer(
    steady: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for passed in (1_000, 20 * MINUTE_MS, HOUR_MS - 1, HOUR_MS, HOUR_MS + 1_000):
        monkeypatch.setattr(shown, "now_ms", lambda now=AT + passed: now)
        found.append((hours(steady), page_time(steady)))
    kept, times = zip(*found, strict=True)
    assert [earlier is later for earlier, later in pairwise(kept)] == [True, False, False, True]
    assert [earlier == later for earlier, later in pairwise(times)] == [False, False, False, True]


def test_without_rebalances_nothing_is_recent(tmp_path: Path, settings: Dashboard) -> None:
    write_rows(tmp_path, "groups", [{"cluster": "c", "group_id": "g", "system": "kafka", "state": "stable"}])
    tables = Reading.of(tmp_path, settings)
    first = recent(tables, last_day(tables))
    assert first.day_ms == first.hour_ms > AT + 1_000 * DAY_MS
    assert plain_rows(overview(tables))[0]["rebalances_day"] == 0
