"""The phases of reported rebalances; expected rows are worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.udfs.group.group_script import T0, Script, assigned
from udfs.model.events import GroupSnapshot
from udfs.model.journal import GroupChanged, Rebalance

_ADDING = "broker log: Adding new member b with group instance id None; client reason: not provided"


def under_way(script: Script, at: int, state: str, **fields: Any) -> None:
    """Have a poll or a log show that a rebalance is under way."""
    script.event(GroupSnapshot, at, state=state, **fields)


def one_member() -> Script:
    script = Script()
    script.queues(0, "t", 2)
    script.snapshot(1_000, 1, {"a": ["t"]}, assigned(a="0 1"), strategy="range", joined_at=T0 + 990)
    return script


def two_members(script: Script, at: int, **fields: Any) -> Rebalance:
    members = {"a": ["t"], "b": ["t"]}
    script.snapshot(at, 2, members, assigned(a="0", b="1"), strategy="range", **fields)
    return script.run(at + 1_000).rebalances[1]


def phases(row: Rebalance) -> list[int | None]:
    times = (row.began_at, row.joined_at, row.completed_at)
    return [None if time is None else time - T0 for time in times]


def test_the_record_has_the_end_of_the_join_phase_and_the_completion() -> None:
    row = two_members(one_member(), 5_000, joined_at=T0 + 4_900)
    assert phases(row) == [4_900, 4_900, 5_000]


def test_a_poll_that_shows_preparing_gives_the_beginning() -> None:
    script = one_member()
    under_way(script, 3_000, "PreparingRebalance", generation=1, reason=_ADDING)
    under_way(script, 4_000, "PreparingRebalance")
    row = two_members(script, 5_000, joined_at=T0 + 4_900)
    assert phases(row) == [3_000, 4_900, 5_000]
    assert (row.pause_ms, row.queue_pause_ms) == (2_000, 4_000)
    assert [(one.kind, one.detail) for one in row.triggers] == [("member_joined", _ADDING)]


def test_where_the_record_has_no_join_phase_the_log_has() -> None:
    """Records of version 1, which Kafka 1.0 and 2.0 write."""
    script = one_member()
    under_way(script, 4_800, "CompletingRebalance", generation=2, joined_at=T0 + 4_800)
    assert phases(two_members(script, 5_000)) == [4_800, 4_800, 5_000]


@pytest.mark.parametrize("ids", [("1", "2", "3"), ("3", "2", "1")])
def test_in_one_millisecond_its_join_phase_ends_first_and_the_next_rebalance_begins_last(ids: tuple[str, ...]) -> None:
    joined, completed, begins = ids
    script = one_member()
    under_way(script, 5_000, "PreparingRebalance", generation=2, event_id=begins)
    under_way(script, 5_000, "CompletingRebalance", generation=2, joined_at=T0 + 5_000, event_id=joined)
    assert phases(two_members(script, 5_000, event_id=completed)) == [5_000, 5_000, 5_000]
    script.snapshot(9_000, 3, {"a": ["t"]}, assigned(a="0 1"), strategy="range")
    assert phases(script.run(9_500).rebalances[2]) == [5_000, None, 9_000]


def test_a_poll_at_the_time_of_a_generation_does_not_begin_the_next_rebalance() -> None:
    script = one_member()
    under_way(script, 5_000, "PreparingRebalance")
    two_members(script, 5_000)
    script.snapshot(9_000, 3, {"a": ["t"]}, assigned(a="0 1"), strategy="range")
    assert phases(script.run(9_500).rebalances[2]) == [None, None, 9_000]


def test_what_is_reported_of_a_rebalance_that_is_over_is_not_taken_for_the_next() -> None:
    script = one_member()
    two_members(script, 5_000, joined_at=T0 + 4_900)
    under_way(script, 6_100, "CompletingRebalance", generation=2, joined_at=T0 + 4_900)  # of the one before
    under_way(script, 6_100, "PreparingRebalance", generation=1, reason="of the one before")
    script.snapshot(9_000, 3, {"a": ["t"]}, assigned(a="0 1"), strategy="range")
    row = script.run(9_500).rebalances[2]
    assert phases(row) == [None, None, 9_000]
    assert [(one.kind, one.detail) for one in row.triggers] == [("member_gone", None)]


def test_without_a_cause_the_coordinators_reason_is_shown() -> None:
    script = one_member()
    reason = "broker log: Leader a re-joining group during Stable; client reason: rebalance enforced by user"
    under_way(script, 3_000, "PreparingRebalance", generation=1, reason=reason)
    script.snapshot(3_100, 2, {"a": ["t"]}, assigned(a="0 1"), strategy="range")
    row = script.run(4_000).rebalances[1]
    assert [(one.kind, one.detail) for one in row.triggers] == [("unexplained", reason)]


def test_counted_generations_have_no_phases() -> None:
    script = Script("rocketmq")
    script.queues(0, "t", 1)
    script.poll(10, "a")
    assert phases(script.run(100).rebalances[0]) == [None, None, None]


def test_the_halves_of_a_cooperative_rebalance_have_one_logical_id() -> None:
    script = Script()
    script.queues(0, "t", 6)
    how = {"strategy": "cooperative-sticky"}
    script.snapshot(1_000, 1, {"a": ["t"]}, assigned(a="0 1 2 3 4 5"), **how)
    two, three = {"a": ["t"], "b": ["t"]}, {"a": ["t"], "b": ["t"], "c": ["t"]}
    script.snapshot(2_000, 2, two, assigned(a="0 1 2", b=""), **how)
    # Another member joins before the second half, which takes more: a chain of three.
    script.snapshot(3_000, 3, three, assigned(a="0 1", b="3 4", c=""), **how)
    script.run(3_500)
    script.snapshot(4_000, 4, three, assigned(a="0 1", b="3 4", c="2 5"), **how)
    script.snapshot(5_000, 5, two, assigned(a="0 1 2", b="3 4 5"), **how)
    script.run(6_000)
    ids = [row.rebalance_id for row in script.rebalances]
    assert [row.logical_id for row in script.rebalances] == [ids[0], ids[1], ids[1], ids[1], ids[4]]


def states(script: Script) -> list[str]:
    rows = [change.body for change in script.changes if isinstance(change.body, GroupChanged)]
    return [row.state for row in rows]


def test_a_group_that_rebalances_is_shown_so_until_its_generation() -> None:
    script = one_member()
    under_way(script, 3_000, "PreparingRebalance", generation=1)
    under_way(script, 4_900, "CompletingRebalance", generation=2)
    two_members(script, 5_000, joined_at=T0 + 4_900)
    under_way(script, 5_100, "CompletingRebalance", generation=2, joined_at=T0 + 4_900)  # over already
    script.run(7_000)
    assert states(script) == ["stable", "preparing_rebalance", "completing_rebalance", "stable"]
    assert script.row().state == "stable"


def test_the_states_of_a_rebalance_do_not_depend_on_batches() -> None:
    script = one_member()
    under_way(script, 3_000, "PreparingRebalance", generation=1)
    script.run(3_500)
    assert script.row().state == "preparing_rebalance"
    two_members(script, 5_000, joined_at=T0 + 4_900)
    assert states(script) == ["stable", "preparing_rebalance", "stable"]


def test_a_poll_dated_after_the_generation_it_waited_for_is_taken_back_by_later_ones() -> None:
    """The collector's clock is 100 ms ahead of the broker's."""
    script = one_member()
    two_members(script, 5_000)
    under_way(script, 5_100, "PreparingRebalance")
    under_way(script, 15_100, "Stable")
    script.run(16_000)
    assert states(script) == ["stable", "stable", "preparing_rebalance", "stable"]
    assert [row.generation for row in script.rebalances] == [1, 2]
    assert sorted(script.group.members) == ["a", "b"]
    script.snapshot(20_000, 3, {"a": ["t"]}, assigned(a="0 1"), strategy="range")
    assert phases(script.run(21_000).rebalances[2]) == [None, None, 20_000]


@pytest.mark.parametrize("cut", [None, 3_500, 9_500])
def test_a_rebalance_that_makes_no_generation_is_over_when_polls_show_it(cut: int | None) -> None:
    script = one_member()
    under_way(script, 3_000, "PreparingRebalance")
    under_way(script, 4_000, "CompletingRebalance")
    under_way(script, 9_000, "Stable")
    if cut is not None:
        script.run(cut)
    two_members(script, 20_000, joined_at=T0 + 19_900)
    assert states(script) == ["stable", "preparing_rebalance", "completing_rebalance", "stable", "stable"]
    assert phases(script.rebalances[1]) == [19_900, 19_900, 20_000]


def test_a_rebalance_that_began_later_is_not_over() -> None:
    script = one_member()
    under_way(script, 3_000, "PreparingRebalance")
    script.run(3_500)
    under_way(script, 2_500, "Stable")
    script.run(4_000)
    assert script.row().state == "preparing_rebalance"


def test_that_a_rebalance_is_over_changes_no_other_state_and_makes_nothing_late() -> None:
    script = one_member()
    under_way(script, 3_000, "Stable")
    assert states(script.run(3_500)) == ["stable"]
    # The generation is read late, and is no late event for that.
    two_members(script, 2_900)
    assert [one.kind for one in script.rebalances[1].triggers] == ["member_joined"]
    script.snapshot(8_000, 3, {}, {}, strategy="")
    under_way(script, 8_500, "PreparingRebalance")
    under_way(script, 9_500, "Stable")
    assert states(script.run(10_000))[-3:] == ["empty", "preparing_rebalance", "empty"]
    # A group that is listed only stays so.
    listed = Script()
    listed.snapshot(10, 3, {}, state="not_followed")
    under_way(listed, 20, "Stable")
    assert states(listed.run(30)) == ["not_followed"]


def test_a_rebalance_under_way_in_a_new_group_is_over_with_its_generation_zero() -> None:
    script = Script()
    script.queues(0, "t", 2)
    under_way(script, 1_000, "PreparingRebalance", generation=0)
    script.snapshot(2_000, 0, {})
    script.snapshot(9_000, 1, {"a": ["t"]}, assigned(a="0 1"), strategy="range", joined_at=T0 + 8_900)
    assert phases(script.run(10_000).rebalances[0]) == [8_900, 8_900, 9_000]
