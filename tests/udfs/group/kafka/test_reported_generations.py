"""Reported generations: causes learned by comparing, two assignments side by side, what Kafka's groups do."""

from __future__ import annotations

import pytest

from tests.udfs.group.group_script import T0, Script, assigned
from udfs.model.events import GroupSnapshot, MemberInfo
from udfs.model.journal import MemberClosed, MemberOpened


def test_a_group_first_observed_in_the_middle_of_its_life_is_marked() -> None:
    script = Script()
    script.snapshot(10, 7, {"a": ["t"]}, assigned(a="0"), strategy="range")
    row = script.run(20).rebalances[0]
    assert script.decided() == ["10 #7 0->1 group_created member_joined:a"]
    assert (row.triggers[0].detail, row.generations_missed, row.generation_source) == ("first seen", None, "reported")


def test_the_same_generation_with_the_same_members_is_no_rebalance() -> None:
    script = Script()
    script.snapshot(10, 1, {"a": ["t"]}, assigned(a="0"), strategy="range")
    script.snapshot(20, 1, {"a": ["t"]}, assigned(a="0"), strategy="range")
    assert len(script.run(30).decided()) == 1


def test_two_generations_of_one_event_time_are_two_rebalances_by_number() -> None:
    script = Script()
    script.snapshot(10, 10, {"a": ["t"], "b": ["t"]}, strategy="range")
    script.snapshot(10, 9, {"a": ["t"]}, strategy="range")
    reported = script.run(20).decided()
    assert reported == ["10 #9 0->1 group_created member_joined:a", "10 #10 1->2 member_joined:b"]
    assert len({row.rebalance_id for row in script.rebalances}) == 2


@pytest.mark.parametrize(("second", "missed"), [(2, None), (3, 1), (5, 3)])
def test_a_gap_in_the_generations_is_counted(second: int, missed: int | None) -> None:
    script = Script()
    script.snapshot(10, 1, {"a": ["t"]}, strategy="range")
    script.snapshot(20, second, {"a": ["t"]}, strategy="range")
    script.snapshot(30, second + 1, {"a": ["t"]}, strategy="range")
    script.run(40)
    assert [row.generations_missed for row in script.rebalances] == [None, missed, None]
    assert script.findings() == ([] if missed is None else ["generations_missed 20..30"])


def test_a_lower_generation_is_a_coordinator_that_lost_its_memory() -> None:
    script = Script()
    script.snapshot(10, 5, {"a": ["t"]}, strategy="range")
    script.snapshot(20, 1, {"a": ["t"]}, strategy="range")
    row = script.run(30).rebalances[1]
    assert script.decided()[1] == "20 #1 1->1 coordinator_changed"
    assert row.generations_missed is None


def test_generation_zero_is_no_rebalance_and_an_emptied_group_is_one() -> None:
    script = Script()
    script.snapshot(10, 0, {})
    script.snapshot(20, 1, {"a": ["t"]}, assigned(a="0"), strategy="range")
    script.snapshot(30, 2, {})
    assert script.run(15).row().state == "empty"
    assert script.run(40).decided() == ["20 #1 0->1 group_created member_joined:a", "30 #2 1->0 member_gone:a"]
    assert script.owners(30) == {}
    assert script.owners(30, "reported") == {}


def test_a_static_member_under_a_new_id_in_the_same_generation_continues() -> None:
    script = Script()
    static = {"instance_id": "i"}
    script.snapshot(10, 1, {"i-1": ["t"]}, {"i-1": [("t", 0)]}, {"i-1": static}, strategy="range")
    script.snapshot(20, 1, {"i-2": ["t"]}, {"i-2": [("t", 0)]}, {"i-2": static}, strategy="range")
    script.run(30)
    assert len(script.decided()) == 1
    assert script.sessions() == ["i-1 10..20 replaced", "i-2 20.."]
    assert script.spans() == ["t/0 i-1 10..20 inferred", "t/0 i-2 20.. inferred"]
    assert script.spans("reported") == ["t/0 i-1 10..20", "t/0 i-2 20.."]
    opened = [one.body for one in script.changes if isinstance(one.body, MemberOpened)]
    assert [(one.member_id, one.former_member_id) for one in opened] == [("i-1", None), ("i-2", "i-1")]


@pytest.mark.parametrize("cut", [None, 13, 16, 17, 25])
@pytest.mark.parametrize("described", [False, True])
def test_a_heartbeat_after_a_goodbye_takes_it_back(described: bool, cut: int | None) -> None:
    script = Script()
    script.snapshot(10, 1, {"a": ["t"], "b": ["t"]})
    if described:
        script.join(11, "a")
    script.beat(12, "a")
    script.leave(15, "a")
    script.beat(16, "a")
    script.snapshot(30, 2, {"b": ["t"]})
    if cut is not None:
        script.run(cut)
    script.run(40)
    assert script.decided()[1:] == ["30 #2 2->1 member_gone:a"]
    assert script.sessions()[0] == "a 10..30 absent_from_snapshot"


def test_a_goodbye_after_the_last_heartbeat_is_the_cause() -> None:
    for last in (14, 15):
        script = Script()
        script.snapshot(10, 1, {"a": ["t"], "b": ["t"]})
        script.beat(last, "a")
        script.leave(15, "a")
        script.snapshot(30, 2, {"b": ["t"]})
        script.run(40)
        assert script.decided()[1:] == ["30 #2 2->1 member_left:a"]


def test_two_connections_of_one_id_are_two_members_of_a_generation() -> None:
    """Both are kept for their sessions; the order in which a snapshot lists them means nothing."""
    one, other, third = (MemberInfo(member_id="a", host=host, subscriptions=("t",)) for host in ("h1", "h2", "h3"))
    for first in ((one, other), (other, one)):
        for cut in (None, 15, 25):
            script = Script("rocketmq")
            script.queues(0, "t", 2)
            script.event(GroupSnapshot, 10, generation=1, members=first, strategy="AVG")
            script.event(GroupSnapshot, 12, generation=1, members=first[::-1], strategy="AVG")
            script.event(GroupSnapshot, 20, generation=2, members=(other,), strategy="AVG")
            script.event(GroupSnapshot, 30, generation=3, members=(third, other), strategy="AVG")
            if cut is not None:
                script.run(cut)
            script.run(40)
            assert script.decided() == [
                "10 #1 0->2 group_created member_joined:a member_joined:a#2",
                "20 #2 2->1 member_gone:a",
                "30 #3 1->2 member_joined:a",
            ]
            assert script.sessions() == ["a 10..20 absent_from_snapshot", "a 30..", "a#2 10.."]
            assert [(one.member_id, one.name, one.host) for one in script.group.members.values()] == [
                ("a", "a", "h3"),
                ("a#2", "a", "h2"),
            ]


# ---- two assignments side by side


@pytest.mark.parametrize("late", [False, True])
def test_a_generation_that_is_reported_again_with_another_assignment_is_compared_anew(late: bool) -> None:
    script = Script()
    script.queues(0, "t", 2)
    script.snapshot(10, 1, {"a": ["t"], "b": ["t"]}, assigned(a="0", b="1"), strategy="range")
    if late:  # applied at the clock, for nothing newer is known of the assignment
        script.settings(40, mode="clustering")
        script.group.last_applied = T0 + 40
        script.run(50)
    script.snapshot(20, 1, {"a": ["t"], "b": ["t"]}, assigned(a="1", b="0"), strategy="range")
    script.run(60)
    script.snapshot(70, 1, {"a": ["t"], "b": ["t"]}, assigned(a="0", b="1"), strategy="range")
    script.run(80)
    found = [one for one in script.findings() if not one.startswith("events_late")]
    assert found == [f"expected_differs {50 if late else 20}..70"]


def test_reported_and_recomputed_are_kept_and_compared() -> None:
    """Range gives a 0 and 1, b 2; members report the opposite: every queue differs."""
    script = Script()
    script.queues(0, "t", 3)
    script.snapshot(10, 1, {"a": ["t"], "b": ["t"]}, assigned(a="0 1", b="2"), strategy="range")
    script.snapshot(20, 2, {"a": ["t"], "b": ["t"]}, assigned(a="2", b="0 1"), strategy="range")
    script.snapshot(30, 3, {"a": ["t"], "b": ["t"]}, assigned(a="0 1", b="2"), strategy="range")
    script.run(40)
    assert [(row.agrees, row.queues_differing) for row in script.rebalances] == [(True, 0), (False, 3), (True, 0)]
    assert [row.queues_moved for row in script.rebalances] == [0, 3, 3]
    assert script.findings() == ["expected_differs 20..30"]
    assert script.spans() == ["t/0 a 10..", "t/1 a 10..", "t/2 b 10.."]
    assert script.owners(25, "reported") == {"t/0": "b", "t/1": "b", "t/2": "a"}


# ---- topics


# ---- how members departed


@pytest.mark.parametrize("clocks", [(90_000,), (48_000, 90_000)])
def test_a_heartbeat_after_an_expiry_takes_it_back_in_the_same_batch_as_in_another(clocks: tuple[int, ...]) -> None:
    script = Script()
    script.beat(0, "a")
    script.snapshot(10, 1, {"a": ["t"], "b": ["t"]}, assigned(a="0", b="1"), strategy="range")
    script.beat(50_000, "a")
    script.snapshot(60_000, 2, {"b": ["t"]}, assigned(b="0 1"), strategy="range")
    for clock in clocks:
        script.run(clock)
    assert script.decided()[-1] == "60000 #2 2->1 member_gone:a"


def test_heartbeats_joins_and_goodbyes_make_no_rebalance_of_their_own() -> None:
    script = Script()
    script.snapshot(10, 1, {"a": ["t"]}, strategy="range")
    script.join(20, "b")
    script.beat(30, "c")
    script.leave(40, "a")
    script.queues(50, "t", 3)
    assert len(script.run(1_000_000).decided()) == 1


def test_the_first_reported_generation_replaces_a_counted_one() -> None:
    script = Script()
    script.join(10, "a")
    script.leave(20, "a")
    script.join(30, "a")
    script.snapshot(40, 2, {"a": ["t"]}, strategy="range")
    script.run(50)
    assert [(row.generation, row.generation_source) for row in script.rebalances][2:] == [
        (3, "counted"),
        (2, "reported"),
    ]
    assert script.decided()[3] == "40 #2 1->1 unexplained"


def test_a_group_that_emptied_without_reported_assignments_loses_what_it_was_assigned() -> None:
    """A snapshot without any owner is no report: what comes next is counted by what the strategy gives."""
    script = Script()
    script.queues(0, "t", 4)
    script.snapshot(10, 5, {})
    script.snapshot(20, 6, {"a": ["t"]}, strategy="range")
    script.snapshot(30, 7, {})
    script.snapshot(40, 8, {"a": ["t"]}, strategy="range")
    script.commit(55, "t", 0)
    script.snapshot(60, 9, {"b": ["t"]}, strategy="range")
    script.run(70)
    counts = [(row.queues_assigned, row.queues_revoked, row.queues_moved) for row in script.rebalances]
    assert counts == [(0, 0, 0), (4, 0, 0), (0, 4, 0), (4, 0, 0), (0, 0, 4)]
    assert script.decided()[4] == "60 #9 1->1 member_left:a member_joined:b"


# ---- pauses, cooperative moves


def test_idle_members_are_evaluated_when_a_cooperative_move_is_over() -> None:
    script = Script()
    script.queues(0, "t", 2)
    how = {"strategy": "cooperative-sticky"}
    script.snapshot(1_000, 1, {"a": ["t"]}, assigned(a="0 1"), **how)
    script.snapshot(2_000, 2, {"a": ["t"], "b": ["t"]}, assigned(a="0", b=""), **how)
    script.snapshot(3_000, 3, {"a": ["t"], "b": ["t"]}, assigned(a="0", b="1"), **how)
    script.snapshot(4_000, 4, {"a": ["t"], "b": ["t"], "c": ["t"]}, assigned(a="0", b="1", c=""), **how)
    script.run(5_000)
    assert script.findings() == ["idle_members 4000.."]


# ---- late, deleted, not followed


def test_a_generation_reported_after_its_followers_is_a_row_of_its_own_and_changes_nothing() -> None:
    script = Script()
    script.snapshot(10, 1, {"a": ["t"]}, assigned(a="0"), strategy="range")
    script.snapshot(30, 3, {"a": ["t"]}, assigned(a="0"), strategy="range")
    script.run(1_000)
    spans = script.spans("reported")
    script.snapshot(20, 2, {"a": ["t"], "b": ["t"]}, assigned(a="0", b="1"), strategy="range")
    script.run(2_000)
    assert script.decided()[-1] == "1000 #2 2->2 late_evidence"
    assert script.spans("reported") == spans
    assert script.row().generation == 3


def test_a_poll_in_the_middle_of_a_rebalance_shows_its_beginning_and_no_members() -> None:
    script = Script()
    script.snapshot(10, 1, {"a": ["t"]}, assigned(a="0"), strategy="range")
    script.snapshot(50, None, {}, state="PreparingRebalance")
    script.snapshot(100, 2, {"a": ["t"]}, assigned(a="0"), strategy="range")
    script.run(200)
    assert script.decided()[1] == "100 #2 1->1 unexplained"
    assert script.rebalances[1].pause_ms == 50


def last_heartbeats(script: Script) -> dict[str, int | None]:
    """Return the last heartbeat of each session that ended."""
    ended = [change.body for change in script.changes if isinstance(change.body, MemberClosed)]
    return {one.member_id: one.last_heartbeat_at and one.last_heartbeat_at - T0 for one in ended}


def test_an_ended_session_has_its_last_heartbeat_however_the_member_departed() -> None:
    for batches in ([60_000], [25_000, 60_000], [25_000, 48_000, 60_000]):
        script = Script()
        script.snapshot(9_000, 9, {"a": ["t"], "b": ["t"], "x": ["t"], "y": ["t"]}, strategy="range")
        script.beat(22_000, "b")
        script.beat(23_000, "x", session_timeout_ms=20_000, host="h")
        script.beat(24_000, "y", session_timeout_ms=20_000, host="h")
        script.beat(45_000, "y")  # takes an expiry back
        script.snapshot(50_000, 10, {"a": ["t"]}, strategy="range")
        for clock in batches:
            script.run(clock)
        assert script.decided()[1] == "50000 #10 4->1 session_expired:x member_gone:b member_gone:y"
        assert last_heartbeats(script) == {"b": 22_000, "x": 23_000, "y": 45_000}


def test_a_generation_that_still_shows_a_member_proves_that_it_had_not_expired() -> None:
    for batches in ([99_000], [20_000, 45_000, 99_000]):
        script = Script()
        script.snapshot(10, 1, {"a": ["t"], "b": ["t"]}, strategy="range")
        script.beat(20, "b", session_timeout_ms=6_000, host="h")
        script.snapshot(30_000, 2, {"b": ["t"]}, strategy="range")
        script.snapshot(90_000, 3, {}, strategy="range")
        for clock in batches:
            script.run(clock)
        assert script.decided()[2] == "90000 #3 1->0 member_gone:b"
        assert script.sessions() == ["a 10..30000 absent_from_snapshot", "b 10..90000 absent_from_snapshot"]
        assert last_heartbeats(script)["b"] == 20


@pytest.mark.parametrize("is_new", [False, True])
def test_what_settles_is_decided_before_the_first_reported_generation_which_takes_what_changed_at_its_time(
    is_new: bool,
) -> None:
    script = Script(settle_ms=1_000)
    script.queues(0, "t", 2)
    if not is_new:
        script.join(10, "a")
        script.queues(1_500, "t", 3)
    script.join(2_000, "b")
    script.queues(2_400, "t", 5)
    script.snapshot(2_400, 1, {"b": ["t"]} if is_new else {"a": ["t"], "b": ["t"]})
    script.run(9_000)
    decided = script.decided() if is_new else script.decided()[1:]
    counted = (
        "2000 #1 0->1 group_created member_joined:b" if is_new else "2000 #2 1->2 member_joined:b queue_count_changed:t"
    )
    assert decided == [counted, f"2400 #1 {'1->1' if is_new else '2->2'} queue_count_changed:t"]
