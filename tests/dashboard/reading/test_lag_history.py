"""The lag of groups over time follows from the rows of their queues; what is not known has none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from dashboard.reading import lag_history as shown
from dashboard.reading.lag_history import LagHistory, lag_history
from dashboard.reading.questions import Reading
from dashboard.reading.time_range import TimeRange
from streaming.settings.locations import location_of
from streaming.tables.schema import Row
from tests.browser.day_tables import MINUTE_MS, T0, rebalance, write_rows

GROUP = {"cluster": "c", "group_id": "g"}
HOUR = TimeRange(T0, T0 + 60 * MINUTE_MS)


def moved(minute: float, queue: int, committed: int | None, end: int | None, group: str = "g") -> Row:
    """Return a row of ``queue_progress`` of a span that began at a minute, whose offsets are those of its end."""
    begin = T0 + round(minute * MINUTE_MS)
    at = begin + MINUTE_MS - 1
    lag = None if committed is None or end is None else end - committed
    place = {"cluster": "c", "group_id": group, "topic": "t", "queue_id": queue, "event_time": begin}
    times = {"committed_at": None if committed is None else at, "end_at": None if end is None else at}
    return place | times | {"committed_offset": committed, "end_offset": end, "lag": lag}


@pytest.fixture
def history(tmp_path: Path) -> Callable[..., LagHistory]:
    """Return the lag of a recorded hour of a group, or of two, of which these rows are known."""

    def of(rows: Sequence[Row], findings: Sequence[Row] = (), until_minute: int = 60, groups: str = "g") -> LagHistory:
        write_rows(tmp_path, "groups", [GROUP | {"group_id": name, "system": "kafka"} for name in groups])
        write_rows(tmp_path, "queue_progress", list(rows))
        # The newest event is that of the end of what is known.
        last = rebalance("c", "g", "r0", T0 + until_minute * MINUTE_MS, "m") | {"queue_outage_max_ms": 7_000}
        write_rows(tmp_path, "rebalances", [last, rebalance("c", "g", "r1", T0 + 5 * MINUTE_MS, "m")])
        if findings:
            write_rows(tmp_path, "findings", list(findings))
        return lag_history(Reading.once(location_of(str(tmp_path))), "c", list(groups), HOUR)

    return of


def at_minute(found: LagHistory, minute: int, group: str = "g") -> Row:
    """Return the row of a group whose step ends with a minute."""
    begin = T0 + (minute - 1) * MINUTE_MS
    (row,) = (row for row in found.rows if (row["at"], row["group_id"]) == (begin, group))
    return row


def test_a_queue_keeps_its_lag_until_it_moves_again(history: Callable[..., LagHistory]) -> None:
    found = history([moved(9, 0, 100, 100), moved(19, 0, 100, 160), moved(39, 0, 160, 160)])
    assert found.step_ms == MINUTE_MS
    lags = {row["at"]: row["lag"] for row in found.rows if row["lag"] is not None}
    assert [lags.get(T0 + (minute - 1) * MINUTE_MS) for minute in (9, 10, 19, 20, 39, 40, 60)] == [
        *(None, 0, 0, 60, 60, 0, 0)
    ]


def test_a_message_waits_from_its_minute_on(history: Callable[..., LagHistory]) -> None:
    found = history([moved(9, 0, 100, 100), moved(19, 0, 100, 160)])
    ages = [at_minute(found, minute)["lag_ms"] for minute in (20, 30, 50)]
    # The 60 messages were written between the beginning and the end of minute 19, the next of them at its beginning.
    assert [round(age / MINUTE_MS) for age in ages] == [2, 12, 32]
    assert all(at_minute(found, minute)["lag_min_ms"] <= at_minute(found, minute)["lag_ms"] for minute in (20, 30, 50))


def test_an_age_without_a_beginning_is_a_lower_bound(history: Callable[..., LagHistory]) -> None:
    row = at_minute(history([moved(9, 0, 100, 160)]), 20)
    assert (row["lag"], row["lag_ms"]) == (60, None)
    assert row["lag_min_ms"] == 10 * MINUTE_MS + 1


def test_queues_are_summed_and_the_worst_is_named_by_its_number(history: Callable[..., LagHistory]) -> None:
    found = history([moved(9, 0, 0, 10), moved(9, 1, 0, 30), moved(19, 2, None, 5)])
    row = at_minute(found, 12)
    assert (row["lag"], row["queue_lag"], row["queues"], row["queues_unknown"]) == (40, 30, 3, 1)


def test_groups_have_rows_of_their_own(history: Callable[..., LagHistory]) -> None:
    found = history([moved(9, 0, 0, 10), moved(9, 0, 5, 10, group="h")], groups="gh")
    assert [at_minute(found, 12, group)["lag"] for group in "gh"] == [10, 5]


def test_a_deleted_queue_has_no_lag(history: Callable[..., LagHistory]) -> None:
    found = history([moved(9, 0, 0, 10), moved(9, 1, 0, 30), moved(19, 1, None, None)])
    assert [at_minute(found, minute)["queues"] for minute in (15, 25)] == [2, 1]
    assert at_minute(found, 25)["lag"] == 10


def test_a_topic_that_was_made_again_begins_a_new_history(history: Callable[..., LagHistory]) -> None:
    found = history([moved(1, 0, 900, 1_000), moved(9, 0, 0, 0), moved(19, 0, 0, 60)])
    # The old end is beyond the new commit, too; it says nothing of the new messages.
    assert round(at_minute(found, 30)["lag_ms"] / MINUTE_MS) == 12


def test_silence_of_the_source_is_a_gap(history: Callable[..., LagHistory]) -> None:
    silent: Row = {"finding_id": "f", "cluster": "c", "kind": "source_silent", "severity": "critical", "message": "m"}
    silent |= {"opened_at": T0 + 20 * MINUTE_MS, "closed_at": T0 + 30 * MINUTE_MS}
    found = history([moved(9, 0, 0, 10)], [silent])
    assert found.gaps == [(T0 + 20 * MINUTE_MS, T0 + 30 * MINUTE_MS)]
    minutes = {(row["at"] - T0) // MINUTE_MS + 1 for row in found.rows}
    assert minutes == {*range(1, 61)} - {*range(21, 31)}


def test_two_findings_of_one_silence_are_one_gap(history: Callable[..., LagHistory]) -> None:
    silent: Row = {"cluster": "c", "kind": "source_silent", "severity": "critical", "message": "m"}
    spans = [("f", 20, 30), ("g", 21, 29), ("h", 40, 42)]
    found = history(
        [moved(9, 0, 0, 10)],
        [
            silent | {"finding_id": name, "opened_at": T0 + begin * MINUTE_MS, "closed_at": T0 + end * MINUTE_MS}
            for name, begin, end in spans
        ],
    )
    assert found.gaps == [(T0 + begin * MINUTE_MS, T0 + end * MINUTE_MS) for begin, end in ((20, 30), (40, 42))]


def test_nothing_is_shown_beyond_what_is_known(history: Callable[..., LagHistory]) -> None:
    found = history([moved(9, 0, 0, 10)], until_minute=40)
    assert found.gaps == [(T0 + 40 * MINUTE_MS, T0 + 60 * MINUTE_MS)]
    assert max(row["at"] for row in found.rows) == T0 + 39 * MINUTE_MS


def test_a_queue_that_has_not_moved_for_long_still_lags(history: Callable[..., LagHistory]) -> None:
    found = history([moved(-500, 0, 0, 10), moved(9, 1, 0, 30)])
    assert [at_minute(found, minute)["lag"] for minute in (5, 30)] == [10, 40]


def test_rebalances_are_marks_with_the_longest_outage(history: Callable[..., LagHistory]) -> None:
    found = history([moved(9, 0, 0, 10)], until_minute=50)
    assert [(mark["id"], mark["outage_ms"]) for mark in found.marks] == [("r1", None), ("r0", 7_000)]


def test_many_rows_are_thinned_block_by_block_to_the_same_lag(
    history: Callable[..., LagHistory], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown, "_BLOCK_ROWS", 1)
    found = history([moved(9, 0, 100, 100), moved(9.5, 0, 100, 130), moved(19, 0, 100, 160)])
    assert [at_minute(found, minute)["lag"] for minute in (10, 20)] == [30, 60]


def test_a_group_without_rows_has_none(history: Callable[..., LagHistory]) -> None:
    assert history([moved(9, 0, 0, 10, group="other")]).rows == []
