"""The truth about a life: the rebalances that a reader of all events so far must find."""

from __future__ import annotations

from streaming.simulator import Cause, Fleet
from streaming.simulator.timeline import Delivery
from streaming.simulator.truth import Truth, epoch_ms, read_truth, rfc3339, truth_lines


def test_causes_of_one_time_are_one_rebalance() -> None:
    truth = Truth()
    truth.reported("c", 20)
    for cause in (Cause("member_left", "a"), Cause("member_joined", "b"), Cause("member_left", "a")):
        truth.counted("c", "kafka", "g", 10, cause, 3)
    (rebalance,) = truth.rebalances()
    assert rebalance.causes == [Cause("member_joined", "b"), Cause("member_left", "a")]
    assert rebalance.generation == 1


def test_rebalances_newer_than_the_newest_event_are_not_expected_yet() -> None:
    truth = Truth()
    truth.reported("c", 20)
    truth.counted("c", "kafka", "g", 20, Cause("session_expired", "a"), 1)
    truth.counted("c", "kafka", "g", 21, Cause("session_expired", "b"), 0)
    assert [rebalance.event_time for rebalance in truth.rebalances()] == [20]


def test_truth_is_read_as_it_was_written(life: tuple[Fleet, list[Delivery]]) -> None:
    fleet, _ = life
    assert read_truth(truth_lines(fleet.truth)) == fleet.truth


def test_times_are_written_in_utc_with_milliseconds() -> None:
    assert rfc3339(1_767_225_600_007) == "2026-01-01T00:00:00.007Z"
    assert epoch_ms("2026-01-01T00:00:00.007Z") == 1_767_225_600_007
