"""Whether a group rebalances more often than usual: its own history decides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as some

from tests.core_config import core_config
from udfs.group.state.flapping import Flapping, Usual, flapping, remember

MINUTE = 60_000
HOUR = 60 * MINUTE


def opened(times: Iterable[int], **rules: Any) -> list[tuple[int, Flapping]]:
    """Return at which of these rebalances the group flaps, and how."""
    config = core_config(**rules)
    recent: Sequence[int] = ()
    usual: Usual | None = None
    found = []
    for at in times:
        recent, usual = remember(recent, usual, at, config)
        much = flapping(recent, usual, config)
        if much is not None:
            found.append((at, much))
    return found


def every(span_ms: int, start_ms: int, end_ms: int) -> list[int]:
    return list(range(start_ms, end_ms, span_ms))


def test_a_storm_in_a_calm_group_is_flapping_at_its_sixth_rebalance() -> None:
    storm = every(10_000, 24 * HOUR, 24 * HOUR + 2 * MINUTE)
    found = opened([*every(2 * HOUR, 0, 23 * HOUR), *storm])
    assert [at for at, _ in found] == storm[5:]
    first = found[0][1]
    assert (first.rebalances, first.within_ms, first.closes_at) == (6, 10 * MINUTE, storm[0] + 10 * MINUTE)
    assert 0 < first.usual < 0.2


def test_a_group_that_always_rebalances_as_often_is_not_flapping() -> None:
    assert opened(every(20_000, 0, 6 * HOUR)) == []
    assert opened(every(5_000, 0, 6 * HOUR)) == []


def test_four_times_as_many_as_usual_are_flapping_and_three_times_are_not() -> None:
    calm = every(2 * MINUTE, 0, 24 * HOUR)  # five in ten minutes
    assert opened([*calm, *every(40_000, 24 * HOUR, 25 * HOUR)]) == []
    found = opened([*calm, *every(20_000, 24 * HOUR, 25 * HOUR)])
    assert found != []
    assert 4.5 < found[0][1].usual < 5.5
    assert opened([*calm, *every(40_000, 24 * HOUR, 25 * HOUR)], flapping_factor=2.5) != []


def test_a_storm_that_does_not_end_becomes_usual() -> None:
    found = opened([*every(2 * HOUR, 0, 24 * HOUR), *every(30_000, 24 * HOUR, 72 * HOUR)])
    assert found[0][0] < 24 * HOUR + 10 * MINUTE
    assert found[-1][0] < 40 * HOUR


def test_old_rebalances_count_less() -> None:
    busy_long_ago = [*every(5_000, 0, 24 * HOUR), *every(3 * HOUR, 24 * HOUR, 21 * 24 * HOUR)]
    storm = every(30_000, 21 * 24 * HOUR, 21 * 24 * HOUR + 10 * MINUTE)
    assert opened([*busy_long_ago, *storm]) != []
    assert opened([*busy_long_ago, *storm], flapping_history_ms=10**12) == []


def test_a_young_group_is_compared_with_the_first_half_of_its_history() -> None:
    storm = every(6_000, 5 * MINUTE, 7 * MINUTE)
    found = opened([0, *storm])
    assert [much.within_ms for _, much in found[:1]] == [found[0][0] // 2]
    assert opened(every(6_000, 0, 7 * MINUTE)) == []


def test_a_storm_after_a_quiet_quarter_is_flapping_at_its_sixth_rebalance() -> None:
    storm = every(5_000, 15 * MINUTE, 16 * MINUTE)
    assert opened([0, *storm])[0][0] == storm[5]
    # Two before it: four times as many are eight.
    assert opened([0, MINUTE, *storm])[0][0] == storm[7]


def test_a_storm_in_a_group_that_is_known_for_six_minutes_is_flapping_at_its_sixth_rebalance() -> None:
    storm = every(5_000, 6 * MINUTE, 7 * MINUTE)
    assert opened([0, *storm])[0][0] == storm[5]
    assert opened([0, *storm[:5]]) == []


def test_a_group_without_history_is_not_compared() -> None:
    assert opened([0, *every(1_000, 4 * MINUTE, 5 * MINUTE)]) == []
    assert opened([0, *every(1_000, 4 * MINUTE, 5 * MINUTE)], flapping_after_ms=MINUTE) != []


def test_so_many_are_flapping_whatever_is_usual() -> None:
    found = opened(every(1_000, 0, 10 * MINUTE))
    assert found[0] == (
        199_000,
        Flapping(rebalances=200, usual=found[0][1].usual, within_ms=600_000, closes_at=600_000),
    )
    assert opened(every(1_000, 0, 10 * MINUTE), flapping_always=700) == []


def test_a_state_of_an_earlier_release_begins_its_history_with_what_it_has() -> None:
    config = core_config()
    recent, usual = remember([0, HOUR, 2 * HOUR], None, 3 * HOUR, config)
    assert (recent, usual.since, usual.at) == ([3 * HOUR], 0, 2 * HOUR)
    assert 2_800 < usual.weight < 3_000


@given(some.lists(some.integers(0, 300_000), max_size=600))
def test_no_more_is_remembered_than_the_limit_and_no_rebalance_is_counted_twice(gaps: list[int]) -> None:
    config = core_config(flapping_history_ms=10**15, flapping_always=50)
    recent: Sequence[int] = ()
    usual: Usual | None = None
    at = 0
    for gap in gaps:
        at += gap
        recent, usual = remember(recent, usual, at, config)
        assert len(recent) <= 50
        assert recent == sorted(recent)
        assert recent[0] > at - config.flapping_within_ms
    assert len(recent) * 1_000 + (usual.weight if usual else 0) == len(gaps) * 1_000
