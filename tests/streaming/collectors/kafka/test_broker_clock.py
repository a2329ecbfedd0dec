"""The brokers' clock, guessed from records."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.collectors.kafka.broker_clock import WINDOW_MS, BrokerClock

NOW = 1_700_000_000_000
ROUND_MS = 5_000


def test_without_any_record_this_machines_clock_is_taken() -> None:
    assert BrokerClock(ROUND_MS).at(NOW) == NOW


def test_a_record_of_an_idle_cluster_proves_nothing() -> None:
    clock = BrokerClock(ROUND_MS)
    clock.saw_record(NOW - 3_600_000, written_after_ms=None, read_ms=NOW)
    assert clock.at(NOW) == NOW


def test_brokers_that_are_behind_are_found_out() -> None:
    clock = BrokerClock(ROUND_MS)
    # A broker an hour behind wrote the record 1 s after the last poll; it was read 1 s later.
    clock.saw_record(NOW + 1_000 - 3_600_000, written_after_ms=NOW, read_ms=NOW + 2_000)
    assert clock.at(NOW + 5_000) == NOW + 5_000 - 3_601_000


def test_brokers_that_are_ahead_are_no_harm() -> None:
    clock = BrokerClock(ROUND_MS)
    clock.saw_record(NOW + 60_000, written_after_ms=NOW - 5_000, read_ms=NOW)
    assert (clock.ahead_ms, clock.at(NOW)) == (0, NOW)


def test_a_record_that_a_broker_shows_again_after_its_start_proves_nothing() -> None:
    clock = BrokerClock(ROUND_MS)
    clock.saw_record(NOW - 3 * ROUND_MS, written_after_ms=None, read_ms=NOW)
    # The broker restarted, showed one record fewer for a moment, and then the same records as before.
    clock.saw_record(NOW - 3 * ROUND_MS, written_after_ms=NOW + 90_000, read_ms=NOW + 91_000)
    assert clock.ahead_ms == 0


def test_its_time_never_decreases() -> None:
    clock = BrokerClock(ROUND_MS)
    first = clock.at(NOW)
    clock.saw_record(NOW - 60_000, written_after_ms=NOW - 1_000, read_ms=NOW)
    assert clock.at(NOW + 1_000) == first


def test_old_observations_are_forgotten() -> None:
    clock = BrokerClock(ROUND_MS)
    clock.saw_record(NOW - 60_000, written_after_ms=NOW - 1_000, read_ms=NOW)
    later = NOW + WINDOW_MS + 1
    clock.saw_record(later, written_after_ms=later - 1_000, read_ms=later)
    assert clock.ahead_ms == 0


@given(
    skew=st.integers(0, 10_000_000),
    writes=st.lists(st.tuples(st.integers(0, 4_999), st.integers(0, 200)), min_size=1, max_size=20),
)
def test_while_somebody_writes_in_every_round_it_never_runs_ahead_and_hardly_behind(
    skew: int, writes: list[tuple[int, int]]
) -> None:
    """Rounds of 5 s; in each one record, written some time after the round before and read at its end."""
    clock = BrokerClock(ROUND_MS)
    for number, (written_after, read_after) in enumerate(writes):
        polled_at = NOW + 5_000 * number
        written = polled_at + written_after
        read = polled_at + 5_000 + read_after
        clock.saw_record(written - skew, written_after_ms=polled_at, read_ms=read)
        broker_ms, shown_ms = read - skew, read - clock.ahead_ms
        assert shown_ms <= broker_ms
        assert shown_ms >= broker_ms - 5_000 - 200


@pytest.mark.parametrize("skew", [0, 1, 1_500, 3_600_000])
def test_an_active_clusters_skew_is_found_up_to_the_time_a_record_was_unread(skew: int) -> None:
    clock = BrokerClock(ROUND_MS)
    for number in range(5):
        polled_at = NOW + 5_000 * number
        clock.saw_record(polled_at + 4_990 - skew, written_after_ms=polled_at, read_ms=polled_at + 5_000)
    assert clock.ahead_ms == skew + 10
