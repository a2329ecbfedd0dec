"""When a clock is written between two rounds."""

from __future__ import annotations

from streaming.collectors.kafka.early_clock import EarlyClock


def test_a_clock_is_due_one_ms_after_the_lateness_and_once() -> None:
    clock = EarlyClock(2_000)
    assert not clock.is_due(9_999)
    clock.add(1_000)
    assert [clock.is_due(at) for at in (3_000, 3_001)] == [False, True]
    clock.passed(3_001)
    assert not clock.is_due(99_999)


def test_each_time_that_waits_has_its_own_clock_unless_one_covers_both() -> None:
    clock = EarlyClock(2_000)
    for at in (1_000, 1_500, 1_400, 3_000):
        clock.add(at)
    clock.passed(3_001)
    assert [clock.is_due(at) for at in (3_500, 3_501)] == [False, True]
    clock.passed(5_001)
    assert not clock.is_due(99_999)
