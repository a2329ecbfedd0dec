"""When transactions happened, and how far the server's clock is from ours."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.collectors.metaq import zk_times
from streaming.collectors.metaq.zk_times import ServerClock, TransactionTimes

NOW = 1_772_334_720_000


def test_recorded_transactions_bound_those_around_them() -> None:
    times = TransactionTimes()
    for zxid, ms in ((30, 300), (10, 100), (20, 200), (20, 200)):
        times.learn(zxid, ms)
    assert [times.not_before(zxid) for zxid in (9, 10, 15, 20, 99)] == [None, 100, 100, 200, 300]
    assert [times.not_after(zxid) for zxid in (9, 10, 15, 30, 31)] == [100, 100, 200, 300, None]


def test_the_oldest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zk_times, "_KEPT", 3)
    times = TransactionTimes()
    for zxid in range(5):
        times.learn(zxid, 10 * zxid)
    assert (times.not_before(1), times.not_after(0)) == (None, 20)


def test_clocks_that_may_agree_are_taken_to_agree() -> None:
    clock = ServerClock()
    clock.observe(NOW - 3, noticed_ms=NOW, absent_ms=NOW - 5_000)
    assert (clock.ahead_ms, clock.at(NOW)) == (0, NOW)


def test_a_server_ahead_is_found_by_nodes_of_the_future() -> None:
    clock = ServerClock()
    clock.observe(NOW + 7_000, noticed_ms=NOW, absent_ms=None)
    clock.observe(NOW + 7_500, noticed_ms=NOW + 1_000, absent_ms=None)
    assert clock.ahead_ms == 7_000


def test_a_server_behind_is_found_by_nodes_that_were_not_there_yet() -> None:
    clock = ServerClock()
    clock.observe(NOW - 9_000, noticed_ms=NOW, absent_ms=None)  # it may have been there for long
    assert clock.ahead_ms == 0
    clock.observe(NOW - 9_000, noticed_ms=NOW, absent_ms=NOW - 1_000)
    assert clock.ahead_ms == -8_000


@given(
    skew=st.integers(-3_600_000, 3_600_000),
    nodes=st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 300)), min_size=1, max_size=20),
)
def test_the_difference_is_never_overrated(skew: int, nodes: list[tuple[int, int]]) -> None:
    clock = ServerClock()
    for number, (made_after, noticed_after) in enumerate(nodes):
        read = NOW + 10_000 * number
        made = read + made_after
        clock.observe(made + skew, noticed_ms=made + noticed_after, absent_ms=read)
        assert 0 <= clock.ahead_ms <= skew or skew <= clock.ahead_ms <= 0
        assert abs(skew - clock.ahead_ms) <= 5_000


def test_a_clock_that_was_set_is_believed_after_a_while() -> None:
    clock = ServerClock()
    clock.observe(NOW + 7_000, noticed_ms=NOW, absent_ms=None)
    later = NOW + 600_001
    clock.observe(later - 5, noticed_ms=later, absent_ms=later - 10)
    assert clock.ahead_ms == 0


def test_reported_times_never_decrease() -> None:
    clock = ServerClock()
    assert clock.advance(NOW) == NOW
    clock.observe(NOW - 9_000, noticed_ms=NOW, absent_ms=NOW - 1_000)
    assert (clock.advance(NOW + 10), clock.at(NOW + 10)) == (NOW, NOW - 7_990)
    assert clock.advance(NOW + 8_001) == NOW + 1
