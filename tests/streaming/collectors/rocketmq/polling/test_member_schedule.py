"""Members that a round polls: changed groups at once, the others in turn, silent members ever less often."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from streaming.collectors.rocketmq.polling.member_schedule import CHANGED_FOR_MS, MemberSchedule

LATER_MS = 10 * CHANGED_FOR_MS


def settled(groups: int, members: int, share: float) -> tuple[MemberSchedule, int]:
    """Make a schedule in which nothing changed lately, and return its time."""
    schedule = MemberSchedule(share)
    for number in range(groups):
        schedule.observe(f"g{number}", {f"g{number}-{member}" for member in range(members)}, 1, 0)
    return schedule, LATER_MS


def requested(schedule: MemberSchedule, now_ms: int) -> list[str]:
    requests = schedule.next_members(now_ms)
    for request in requests:
        schedule.answered(request.group, request.client_id, now_ms)
    return [request.client_id for request in requests]


@given(st.integers(1, 30), st.integers(1, 5), st.floats(0.05, 1.0))
def test_every_member_is_queried_and_none_twice_before_all_were(groups: int, members: int, share: float):
    schedule, now_ms = settled(groups, members, share)
    counts: Counter[str] = Counter()
    while len(counts) < groups * members:
        mine = requested(schedule, now_ms)
        assert 1 <= len(mine) <= share * groups * members + 1
        counts.update(mine)
        now_ms += 5_000
        assert max(counts.values()) <= 2
    assert sum(counts.values()) < groups * members * (1 + share) + 1


def test_a_group_that_changed_is_queried_at_once_before_all_others_and_for_a_while() -> None:
    schedule, now_ms = settled(100, 2, 0.1)
    schedule.observe("g50", {"g50-0", "new"}, 1, now_ms)
    assert set(requested(schedule, now_ms)[:2]) == {"g50-0", "new"}
    assert set(requested(schedule, now_ms + CHANGED_FOR_MS - 1)[:2]) == {"g50-0", "new"}
    assert set(requested(schedule, now_ms + CHANGED_FOR_MS)[:2]) != {"g50-0", "new"}


def test_a_newer_version_of_a_subscription_is_a_change_and_an_older_one_is_not() -> None:
    schedule, now_ms = settled(100, 2, 0.01)
    ids = {"g50-0", "g50-1"}
    schedule.observe("g50", ids, 0, now_ms)
    assert len(requested(schedule, now_ms)) == 2
    schedule.observe("g50", ids, 2, now_ms)
    assert ids <= set(requested(schedule, now_ms))


def test_state_from_before_this_process_is_not_a_change() -> None:
    schedule = MemberSchedule(0.01)
    schedule.remember("g", ["a", "b"], 7)
    schedule.observe("g", {"a", "b"}, 7, LATER_MS)
    assert len(requested(schedule, LATER_MS)) == 1
    schedule.observe("g", {"a", "b"}, 8, LATER_MS)
    assert len(requested(schedule, LATER_MS)) == 2


def test_a_silent_member_is_queried_ever_more_rarely_last_and_at_least_each_minute() -> None:
    schedule = MemberSchedule(1.0)
    schedule.observe("g", {"a", "hung"}, 1, 0)
    times = []
    for now_ms in range(LATER_MS, LATER_MS + 600_000, 1_000):
        requests = schedule.next_members(now_ms)
        assert requests[0].client_id == "a"
        for request in requests[1:]:
            schedule.was_silent("g", request.client_id, now_ms)
            times.append(now_ms)
        schedule.answered("g", "a", now_ms)
    waits = [after - before for before, after in pairwise(times)]
    assert waits == sorted(waits)
    # It is polled again in the next round: a member that was only slow answers then.
    assert waits[:2] == [1_000, 10_000]
    assert waits[-1] == 60_000
    schedule.answered("g", "hung", LATER_MS + 600_000)
    assert not any(request.is_silent for request in schedule.next_members(LATER_MS + 600_000))


def test_an_answer_for_a_removed_group_or_member_disturbs_nothing() -> None:
    schedule, now_ms = settled(2, 1, 1.0)
    schedule.keep_only(["g1"])
    schedule.answered("g0", "g0-0", now_ms)
    schedule.was_silent("g1", "nobody", now_ms)
    assert [request.client_id for request in schedule.next_members(now_ms)] == ["g1-0"]


def test_offsets_of_a_group_are_requested_with_its_members() -> None:
    schedule, now_ms = settled(10, 2, 0.3)
    found: list[str] = []
    for number in range(4):
        at_ms = now_ms + number
        groups = {name.partition("-")[0] for name in requested(schedule, at_ms)}
        chosen = schedule.next_offsets(at_ms, groups)
        assert set(chosen) == groups
        found += chosen
    assert set(found) == {f"g{number}" for number in range(10)}


def test_offsets_are_requested_of_twice_the_share_at_most() -> None:
    schedule, now_ms = settled(10, 1, 0.1)
    everyone = [f"g{number}" for number in range(10)]
    rounds = [schedule.next_offsets(now_ms + number, everyone) for number in range(5)]
    assert [len(names) for names in rounds] == [2] * 5
    assert sorted(name for names in rounds for name in names) == everyone


def test_offsets_of_groups_without_a_member_that_answers_are_requested_one_after_another() -> None:
    schedule, now_ms = settled(4, 1, 0.5)
    for number in range(6):
        schedule.observe(f"empty{number}", set(), 1, now_ms - CHANGED_FOR_MS)
    schedule.was_silent("g0", "g0-0", now_ms)
    rounds = [schedule.next_offsets(now_ms + number, {"g1"}) for number in range(3)]
    found = {name for names in rounds for name in names}
    assert found == {"g0", "g1", *(f"empty{number}" for number in range(6))}
    assert set(schedule.next_offsets(now_ms, everybody=True)) == {*found, "g2", "g3"}
