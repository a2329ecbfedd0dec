"""Reported generations: causes learned by comparing, two assignments side by side, what Kafka's groups do."""

from __future__ import annotations

import pytest

from tests.udfs.group.group_script import T0, Script
from udfs.model.events import GroupSnapshot, MemberInfo
from udfs.model.journal import MemberClosed, MemberOpened


def assigned(**held: str) -> dict[str, list[tuple[str, int]]]:
    """Spell an assignment: a="0 1" is partitions 0 and 1 of topic t."""
    return {member: [("t", int(number)) for number in numbers.split()] for member, numbers in held.items()}


def test_a_group_first_observed_in_the_middle_of_its_life_is_marked() -> None:
    script = Script()
    script.snapshot(10, 7, {"a": ["t"]}, assigned(a="0"), strategy="range")
    row = script.run(20).rebalances[0]
    assert script.decided() == ["10 #7 0->1 group_created member_joined:a"]
    assert (row.triggers[0].detail, row.generations_missed, row.generation_source) == ("first seen", None, "reported")


def test_joins_departures_and_changes_are_learned_from_the_members() -> None:
    script = Script()
    script.snapshot(10, 1, {"a": ["t"], "b": ["t"]}, assigned(a="0", b="1"), strategy="range")
    script.snapshot(20, 2, {"b": ["t", "u"], "c": ["t"]}, assigned(b="0", c="1"), strategy="range")
    script.run(30)
    assert script.decided()[1] == "20 #2 2->2 member_gone:a member_joined:c subscription_changed:b"
    assert script.sessions() == ["a 10..20 absent_from_snapshot", "b 10..", "c 20.."]


def test_the_same_generation_with_the_same_members_is_no_rebalance() -> None:
    script = Script()
    script.snapshot(10, 1, {"a": ["t"]}, assigned(a="0"), strategy="range")
    script.snapshot(20, 1, {"a": ["t"]}, assigned(a="0"), strategy="range")
    assert len(script.run(30).decided()) == 1


def test_a_new_generation_in_which_nothing_changed_is_unexplained() -> None:
    script = Script()
    script.snapshot(10, 1, {"a": ["t"]}, assigned(a="0"), strategy="range")
    script.snapshot(20, 2, {"a": ["t"]}, assigned(a="0"), strategy="range")
    assert script.run(30).decided()[1] == "20 #2 1->1 unexplained"


def test_two_generations_of_one_event_time_are_two_rebalances_by_number() -> None:
    script = Script()
    script.snapshot(10, 10, {"a": ["t"], "b": ["t"]}, strategy="range")
    script.snapshot(10, 9, {"a": ["t"]}, strategy="range")
    told = script.run(20).decided()
    assert told == ["10 #9 0->1 group_created member_joined:a", "10 #10 1->2 member_joined:b"]
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
    who = {"instance_id": "i"}
    script.snapshot(10, 1, {"i-1": ["t"]}, {"i-1": [("t", 0)]}, {"i-1": who}, strategy="range")
    script.snapshot(20, 1, {"i-2": ["t"]}, {"i-2": [("t", 0)]}, {"i-2": who}, strategy="range")
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


def test_no_member_is_idle_while_a_generation_waits_for_its_topics() -> None:
    script = Script()
    script.queues(0, "u", 3)
    script.snapshot(10, 3, {"a": ["t"], "b": ["t"], "x": ["u"]}, strategy="range")
    script.queues(500, "t", 1)
    script.run(100)
    row = script.rebalances[0]
    assert (row.queues_assigned, row.idle_members, row.unassigned_queues, row.spread) == (0, 0, 0, 0)
    assert script.findings() == []
    script.run(600)
    assert (script.row().idle_members, script.row().unassigned_queues, script.row().spread) == (1, 0, 3)
    assert script.findings() == ["idle_members 500.."]


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


def test_a_strategy_that_the_snapshot_names_is_taken_without_a_vote() -> None:
    script = Script()
    script.queues(0, "t", 2)
    script.snapshot(10, 1, {"a": ["t"], "b": ["t"]}, assigned(a="0", b="1"), strategy="roundrobin")
    script.snapshot(20, 2, {"a": ["t"], "b": ["t"]}, assigned(a="0", b="1"), strategy="range")
    script.run(30)
    assert [row.strategy for row in script.rebalances] == ["kafka.roundrobin", "kafka.range"]
    assert script.decided()[1] == "20 #2 2->2 strategy_changed"


# ---- two assignments side by side


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


def test_a_strategy_that_cannot_be_recomputed_completes_and_its_computed_spans_end() -> None:
    script = Script()
    script.queues(0, "t", 1)
    script.snapshot(10, 1, {"a": ["t"]}, assigned(a="0"), strategy="range")
    script.snapshot(20, 2, {"a": ["t"]}, assigned(a="0"), strategy="acme.tiers")
    row = script.run(30).rebalances[1]
    assert (row.status, row.error, row.agrees, row.strategy) == (
        "completed",
        "not_recomputable",
        None,
        "kafka.acme.tiers",
    )
    assert script.spans() == ["t/0 a 10..20"]
    assert script.spans("reported") == ["t/0 a 10.."]


def test_a_strategy_of_their_own_for_which_members_voted_is_not_recomputable_either() -> None:
    script = Script()
    script.queues(0, "t", 1)
    script.snapshot(10, 1, {"a": ["t"], "b": ["t"]}, describe={"a": {"strategies": ("acme.tiers", "range")}})
    row = script.run(30).rebalances[0]
    assert (row.status, row.error, row.strategy) == ("completed", "not_recomputable", "kafka.acme.tiers")
    assert script.findings() == []


def test_a_report_of_a_generation_not_yet_observed_waits_for_its_snapshot() -> None:
    script = Script()
    script.snapshot(10, 1, {"a": ["t"]}, strategy="range")
    script.holds(15, "a", [("t", 0)], generation=2)
    script.holds(16, "a", [("t", 9)], generation=0)
    script.snapshot(20, 2, {"a": ["t"]}, strategy="range")
    assert script.run(18).spans("reported") == []
    assert script.run(30).spans("reported") == ["t/0 a 20.."]


# ---- topics


def test_the_first_reported_queues_hold_for_the_current_generation_from_its_own_time() -> None:
    script = Script()
    script.snapshot(10, 4, {"a": ["t"], "b": ["t"]}, strategy="range")
    script.queues(500, "t", 2)
    script.queues(600, "t", 4)
    assert script.run(100).spans() == []
    script.run(700)
    assert script.spans() == ["t/0 a 10.. inferred", "t/1 b 10.. inferred"]
    assert len(script.decided()) == 1
    assert script.row().queues == 2


def test_a_topic_reported_only_later_completes_the_groups_row() -> None:
    script = Script()
    script.snapshot(10, 4, {"a": ["t"], "b": ["t"], "c": ["t"]}, strategy="range")
    script.queues(500, "t", 2)
    script.run(100)
    assert (script.row().queues, script.row().idle_members) == (0, 3)
    row = script.run(700).row()
    assert (row.queues, row.idle_members, row.unassigned_queues, row.spread) == (2, 1, 0, 1)


def test_a_generation_computed_late_brings_nothing_back_that_a_deletion_at_its_own_time_had_ended() -> None:
    script = Script()
    script.queues(0, "u", 1)
    script.snapshot(10, 1, {"a": ["u"]}, {"a": [("u", 0)]}, strategy="range")
    script.delete(800)
    script.snapshot(800, 1, {"a": ["t"]}, assigned(a="0"), strategy="range")
    script.queues(900, "t", 2)
    script.run(1_000)
    assert script.spans() == ["t/0 a 800.. inferred", "t/1 a 800.. inferred", "u/0 a 10..800"]


def test_growth_is_a_cause_of_the_generation_that_uses_the_new_queues() -> None:
    script = Script()
    script.queues(0, "t", 2)
    script.snapshot(10, 1, {"a": ["t"]}, assigned(a="0 1"), strategy="range")
    script.queues(20, "t", 3, event_id="grown")
    script.snapshot(30, 2, {"a": ["t"], "b": ["t"]}, assigned(a="0", b="1"), strategy="range")
    script.snapshot(40, 3, {"a": ["t"], "b": ["t"]}, assigned(a="0 1", b="2"), strategy="range")
    script.run(50)
    assert script.decided()[1:] == ["30 #2 1->2 member_joined:b", "40 #3 2->2 queue_count_changed:t"]
    assert [row.agrees for row in script.rebalances] == [True, True, True]
    assert script.rebalances[2].triggers[0].event_id == "grown"
    assert [row.queues_after for row in script.rebalances] == [2, 2, 3]


def test_an_assignment_that_names_partitions_not_shown_yet_proves_growth() -> None:
    script = Script()
    script.queues(0, "t", 2)
    script.snapshot(10, 1, {"a": ["t"]}, assigned(a="0 1"), strategy="range")
    script.snapshot(20, 2, {"a": ["t"]}, assigned(a="0 1 2 3"), strategy="range")
    script.queues(30, "t", 4)
    script.snapshot(40, 3, {"a": ["t"]}, assigned(a="0 1 2 3"), strategy="range")
    script.run(50)
    assert script.decided()[1:] == ["20 #2 1->1 queue_count_changed:t", "40 #3 1->1 unexplained"]
    assert script.owners(20) == {f"t/{number}": "a" for number in range(4)}


# ---- how members went


@pytest.mark.parametrize(
    ("last_commit", "kind"),
    [
        (None, "member_gone"),
        (2_000, "session_expired"),
        (4_000, "session_expired"),  # exactly a session timeout before
        (4_001, "member_gone"),  # a heartbeat may have been a little older than the commit
        (6_000, "member_gone"),
        (6_001, "member_left"),
        (9_999, "member_left"),
        (10_000, "member_gone"),  # at the generation's own moment: no more of the member's own
    ],
)
def test_commits_distinguish_a_leave_from_an_expiry(last_commit: int | None, kind: str) -> None:
    script = Script()
    described = {"a": {"session_timeout_ms": 6_000}}
    script.snapshot(1_000, 1, {"a": ["t"], "b": ["t"]}, assigned(a="0", b="1"), described, strategy="range")
    if last_commit is not None:
        script.commit(last_commit, "t", 0)
    script.snapshot(10_000, 2, {"b": ["t"]}, assigned(b="0 1"), strategy="range")
    trigger = script.run(20_000).rebalances[1].triggers[0]
    assert trigger.kind == kind
    assert trigger.detail == (None if kind == "member_gone" else "inferred")


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


def test_commits_of_an_earlier_owner_are_no_evidence() -> None:
    script = Script()
    script.commit(900, "t", 0)
    script.snapshot(1_000, 1, {"a": ["t"], "b": ["t"]}, assigned(a="0", b="1"), strategy="range")
    script.snapshot(100_000, 2, {"b": ["t"]}, assigned(b="0 1"), strategy="range")
    assert script.run(200_000).decided()[1] == "100000 #2 2->1 member_gone:a"


def test_a_reported_leave_is_the_cause_of_the_generation_that_shows_it() -> None:
    script = Script()
    script.snapshot(10, 1, {"a": ["t"], "b": ["t"]}, assigned(a="0", b="1"), strategy="range")
    script.leave(50, "a", event_id="bye")
    script.snapshot(100, 2, {"b": ["t"]}, assigned(b="0 1"), strategy="range")
    row = script.run(200).rebalances[1]
    assert (row.triggers[0].kind, row.triggers[0].event_id) == ("member_left", "bye")
    assert script.sessions()[0] == "a 10..50 left"
    assert row.pause_ms == 50


def test_a_leave_at_the_very_time_of_the_generation_counts_too() -> None:
    script = Script()
    script.snapshot(10, 1, {"a": ["t"], "b": ["t"]}, strategy="range")
    script.leave(100, "a")
    script.snapshot(100, 2, {"b": ["t"]}, strategy="range")
    assert script.run(200).decided()[1] == "100 #2 2->1 member_left:a"


def test_evidence_reported_after_its_generation_was_written_causes_nothing() -> None:
    script = Script()
    script.snapshot(10, 1, {"a": ["t"], "b": ["t"]}, strategy="range")
    script.snapshot(100, 2, {"b": ["t"]}, strategy="range")
    script.run(200)
    script.leave(50, "a")
    script.run(300)
    script.snapshot(400, 3, {"b": ["t"]}, strategy="range")
    assert script.run(500).decided()[1:] == ["100 #2 2->1 member_gone:a", "400 #3 1->1 unexplained"]


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


def test_a_topic_that_vanishes_or_returns_is_the_cause_of_the_generation_that_shows_it() -> None:
    script = Script()
    script.queues(0, "t", 6)
    script.snapshot(10, 1, {"a": ["t"]}, strategy="range")
    script.queues(20, "t", 0)
    script.snapshot(30, 2, {"a": ["t"]}, strategy="range")
    script.queues(40, "t", 3)
    script.snapshot(50, 3, {"a": ["t"]}, strategy="range")
    script.run(60)
    assert script.decided()[1:] == ["30 #2 1->1 queue_count_changed:t", "50 #3 1->1 queue_count_changed:t"]
    assert [row.triggers[0].detail for row in script.rebalances[1:]] == ["6 -> 0", "0 -> 3"]
    assert [(row.queues_before, row.queues_after) for row in script.rebalances[1:]] == [(6, 0), (0, 3)]


def test_a_topic_reported_from_the_first_as_deleted_is_new_when_it_comes() -> None:
    script = Script()
    script.snapshot(10, 1, {"a": ["t"]}, strategy="range")
    script.queues(20, "t", 0)
    script.queues(40, "t", 3)
    script.snapshot(50, 2, {"a": ["t"]}, strategy="range")
    script.run(60)
    assert script.decided()[1:] == ["50 #2 1->1 queue_count_changed:t"]


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


def test_an_eager_pause_is_the_time_since_the_first_evidence_for_every_queue_held() -> None:
    script = Script()
    script.queues(0, "t", 4)
    script.snapshot(1_000, 1, {"a": ["t"]}, assigned(a="0 1 2 3"), strategy="range", joined_at=T0 + 990)
    script.snapshot(
        5_000, 2, {"a": ["t"], "b": ["t"]}, assigned(a="0 1", b="2 3"), strategy="range", joined_at=T0 + 4_900
    )
    script.run(6_000)
    assert [(row.pause_ms, row.queue_pause_ms) for row in script.rebalances] == [(10, 0), (100, 400)]


def test_where_no_beginning_was_observed_the_pause_is_only_estimated() -> None:
    script = Script()
    script.queues(0, "t", 2)
    script.snapshot(1_000, 1, {"a": ["t"]}, assigned(a="0 1"), strategy="range")
    script.commit(4_000, "t", 0)
    script.commit(4_500, "t", 1)
    script.snapshot(5_000, 2, {"a": ["t"], "b": ["t"]}, assigned(a="0", b="1"), strategy="range")
    row = script.run(6_000).rebalances[1]
    assert (row.pause_ms, row.queue_pause_ms) == (None, None)
    assert (row.pause_estimated_ms, row.queue_pause_estimated_ms) == (500, 1_500)


def test_a_cooperative_move_takes_two_generations_and_pauses_only_what_moves() -> None:
    script = Script()
    script.queues(0, "t", 4)
    how = {"strategy": "cooperative-sticky"}
    script.snapshot(1_000, 1, {"a": ["t"]}, assigned(a="0 1 2 3"), joined_at=T0 + 990, **how)
    both = {"a": ["t"], "b": ["t"]}
    script.snapshot(5_000, 2, both, assigned(a="0 1", b=""), joined_at=T0 + 4_950, **how)
    script.snapshot(5_800, 3, both, assigned(a="0 1", b="2 3"), joined_at=T0 + 5_790, **how)
    script.run(6_000)
    assert script.decided()[1:] == ["5000 #2 1->2 member_joined:b", "5800 #3 2->2 cooperative_follow_up"]
    assert [row.queue_pause_ms for row in script.rebalances] == [0, None, 1_600]
    assert [row.unassigned_queues for row in script.rebalances] == [0, 2, 0]


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


def test_a_deleted_group_of_reported_generations_ends_without_a_rebalance() -> None:
    script = Script()
    script.snapshot(10, 5, {"a": ["t"]}, assigned(a="0"), strategy="range")
    script.delete(20)
    script.snapshot(30, 1, {"b": ["t"]}, assigned(b="0"), strategy="range")
    script.run(40)
    assert script.decided()[1:] == ["30 #1 0->1 group_created member_joined:b"]
    assert script.sessions() == ["a 10..20 gone", "b 30.."]
    assert script.spans("reported") == ["t/0 a 10..20", "t/0 b 30.."]


def test_a_group_of_a_kind_that_is_not_followed_is_listed_and_never_rebalances() -> None:
    script = Script()
    script.snapshot(10, 3, {}, state="not_followed")
    script.snapshot(20, 4, {}, state="not_followed")
    script.queues(25, "t", 3)
    script.run(30)
    assert script.decided() == []
    assert (script.row().state, script.row().generation) == ("not_followed", 4)


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
