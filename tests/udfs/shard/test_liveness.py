"""The table of last heartbeats. The model is a dict of them, fed one heartbeat at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from udfs.shard.liveness import HeartbeatRows, Liveness

TIMEOUTS = {0: 10, 1: 10, 2: 25, 3: 10}
GROUP_OF = {0: 0, 1: 0, 2: 0, 3: 2}  # group 1 has no members


def table() -> Liveness:
    live = Liveness(0)
    rows = [
        HeartbeatRows(
            np.asarray([member << 30 for member in GROUP_OF if GROUP_OF[member] == group], dtype=np.uint64),
            np.asarray([0 for member in GROUP_OF if GROUP_OF[member] == group], dtype=np.int64),
            np.asarray([TIMEOUTS[member] for member in GROUP_OF if GROUP_OF[member] == group], dtype=np.int64),
        )
        for group in range(3)
    ]
    live.replace(np.zeros(3, dtype=np.int64), np.arange(3), rows)
    return live


def reopened(live: Liveness) -> Liveness:
    return Liveness(3, live.encode_members(), live.encode_last_heartbeats(), live.encode_waiting())


pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 60)), max_size=25)


@given(st.lists(st.tuples(pairs, st.integers(0, 10)), min_size=1, max_size=5))
def test_it_returns_which_groups_have_lost_a_member_and_each_last_heartbeat(
    batches: list[tuple[list[tuple[int, int]], int]],
) -> None:
    live = table()
    last = dict.fromkeys(GROUP_OF, 0)
    waiting: set[tuple[int, int]] = set()
    clock = 0
    for batch, step in batches:
        clock += step
        waiting |= set(batch)
        lost = set()
        for at in range(clock):
            for member in GROUP_OF:
                if (member, at) in waiting:
                    if at - last[member] > TIMEOUTS[member]:
                        lost.add(GROUP_OF[member])
                    last[member] = max(last[member], at)
        lost |= {GROUP_OF[member] for member in GROUP_OF if last[member] + TIMEOUTS[member] < clock}
        waiting = {(member, at) for member, at in waiting if at >= clock}
        applied = live.apply_due(
            np.asarray([member for member, _ in batch], dtype=np.int64),
            np.asarray([at for _, at in batch], dtype=np.int64),
            None,
            clock,
        )
        assert set(np.flatnonzero(applied.due_groups).tolist()) == lost
        assert dict(enumerate(live.last.tolist())) == last
        assert set(zip(live.waiting_members.tolist(), live.waiting_times.tolist(), strict=True)) == waiting
        live = reopened(live)


def test_a_silent_member_takes_seven_bytes() -> None:
    count = 10_000
    live = Liveness(0)
    rows = HeartbeatRows(
        np.arange(count, dtype=np.uint64) << np.uint64(24),
        np.arange(count, dtype=np.int64) * 6,
        np.full(count, 45_000, dtype=np.int64),
    )
    live.replace(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), [rows])
    size = len(live.encode_members()) + len(live.encode_last_heartbeats()) + len(live.encode_waiting())
    assert 7 * count <= size < 7 * count + 150


@pytest.mark.parametrize("timeouts", [[10, 10, 10], [10, 20, 10], [1, 2, 3]])
def test_members_of_different_timeouts_keep_their_own(timeouts: list[int]) -> None:
    live = Liveness(0)
    rows = HeartbeatRows(
        np.asarray([1, 2, 3], dtype=np.uint64) << np.uint64(24),
        np.zeros(3, dtype=np.int64),
        np.asarray(timeouts, dtype=np.int64),
    )
    live.replace(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), [rows])
    assert Liveness(1, live.encode_members(), live.encode_last_heartbeats()).timeouts.tolist() == timeouts


def test_waiting_heartbeats_follow_their_members_when_groups_come_in_between() -> None:
    live = table()
    live.apply_due(np.asarray([0, 3], dtype=np.int64), np.asarray([50, 51], dtype=np.int64), None, 10)
    key = int(live.keys[3])
    fresh = HeartbeatRows(
        np.asarray([9 << 30], dtype=np.uint64), np.asarray([5], dtype=np.int64), np.asarray([10], dtype=np.int64)
    )
    # A group before all others comes in; the old group 0 loses every member.
    none = HeartbeatRows(*(column[:0] for column in fresh))
    lost = live.replace(np.asarray([0]), np.asarray([0, 1]), [fresh, none])
    assert live.counts.tolist() == [1, 0, 0, 1]
    assert lost == [(1, 0, 50)]
    [row] = live.waiting_members.tolist()
    assert (int(live.keys[row]), int(live.numbers[row]), live.waiting_times.tolist()) == (key, 3, [51])


def test_a_heartbeat_read_many_times_waits_once_or_twice() -> None:
    live = table()
    for _ in range(50):
        live.apply_due(np.asarray([0, 1, 2], dtype=np.int64), np.asarray([50, 51, 52], dtype=np.int64), None, 10)
    assert len(live.waiting_times) <= 4
