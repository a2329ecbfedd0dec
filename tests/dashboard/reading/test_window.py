"""The last day ends now, or with tables that nobody writes any more."""

from __future__ import annotations

from dashboard.reading.questions import Reading
from dashboard.reading.window import DAY_MS, HOUR_MS, STEP_MS, last_day, newest_ms
from tests.streaming.tables.journals import T0


def test_the_newest_time_is_that_of_the_last_change(reading: Reading) -> None:
    assert newest_ms(reading) == T0 + 70_000


def test_live_tables_end_with_this_hour(reading: Reading) -> None:
    now = T0 + 90 * 60_000
    window = last_day(reading, now)
    assert window.is_live
    assert window.until_ms - window.since_ms == DAY_MS
    assert now < window.until_ms <= now + HOUR_MS
    assert now < window.now_ms <= now + STEP_MS


def test_a_recording_ends_with_its_newest_change(reading: Reading) -> None:
    window = last_day(reading, T0 + 30 * DAY_MS)
    assert not window.is_live
    assert window.since_ms < T0 + 70_000 < window.until_ms <= T0 + 70_000 + HOUR_MS
