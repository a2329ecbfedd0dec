"""Groups that admin calls show: a coordinator assigns, and the monitor counts what changed between two polls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.udfs.group.group_script import Script, assigned
from udfs.group.kafka.polled_generations import is_polled
from udfs.group.state.group import POLLS
from udfs.model.events import GroupSnapshot

Held = dict[str, Sequence[tuple[str, int]]]
T, U, BOTH = [("t", 0), ("t", 1)], [("u", 0), ("u", 1)], ["t", "u"]


def polled(script: Script, at: int, members: dict[str, Sequence[str]], held: Held | None = None, **fields: Any) -> None:
    strategy = {"strategy": "range"} if members else {}
    script.snapshot(at, None, members, held, generation_source="counted", **strategy | fields)


def of_new_protocol(script: Script, at: int, held: Held, state: str = "Stable") -> None:
    """Have a poll show a group of the new protocol: not what its members subscribe to."""
    script.snapshot(at, None, {one: [] for one in held}, held, generation_source="counted", strategy="server.uniform",
                    state=state)  # fmt: skip
    for member in script.waiting[-1].members:
        member.subscriptions = None


def causes(script: Script) -> list[list[tuple[str, str | None, str | None]]]:
    """Return the causes of each generation after the first: kind, member or topic, detail."""
    rows = script.rebalances[1:]
    return [[(one.kind, one.member_id or one.topic, one.detail) for one in row.triggers] for row in rows]


def test_what_changed_between_two_polls_is_one_generation_with_its_cause() -> None:
    script = Script()
    script.queues(0, "t", 4)
    polled(script, 10, {"a": ["t"]}, assigned(a="0 1 2 3"))
    polled(script, 20, {"a": ["t"], "b": ["t"]}, assigned(a="0 1", b="2 3"))
    polled(script, 30, {"a": ["t"]}, assigned(a="0 1 2 3"))
    polled(script, 40, {})
    assert script.run(50).decided() == [
        "10 #1 0->1 group_created member_joined:a",
        "20 #2 1->2 member_joined:b",
        "30 #3 2->1 member_gone:b",
        "40 #4 1->0 member_gone:a",
    ]
    assert {(row.generation_source, row.observed_by) for row in script.rebalances} == {("counted", POLLS)}
    assert [row.agrees for row in script.rebalances] == [True, True, True, None]
    assert (script.row().state, script.row().observed_by) == ("empty", POLLS)
    assert script.rebalances[0].triggers[0].detail == "first seen"


def test_a_poll_that_shows_nothing_new_is_no_rebalance() -> None:
    script = Script()
    script.queues(0, "t", 1)
    for at in (10, 20, 30):
        polled(script, at, {"a": ["t"]}, assigned(a="0"))
    assert len(script.run(40).decided()) == 1


def test_a_topic_that_grew_is_a_cause_once_the_assignment_shows_it_and_not_before() -> None:
    script = Script()
    script.queues(0, "t", 1)
    polled(script, 10, {"a": ["t"]}, assigned(a="0"))
    script.queues(20, "t", 2)
    assert len(script.run(25).decided()) == 1
    polled(script, 30, {"a": ["t"]}, assigned(a="0 1"))
    assert script.run(40).decided()[1:] == ["30 #2 1->1 queue_count_changed:t"]


def test_queues_that_moved_without_a_visible_cause_are_unexplained() -> None:
    script = Script()
    script.queues(0, "t", 2)
    members = {"a": ["t"], "b": ["t"]}
    polled(script, 10, members, assigned(a="0", b="1"))
    polled(script, 20, members, assigned(a="1", b="0"))
    assert script.run(30).decided()[1:] == ["20 #2 2->2 unexplained"]


@pytest.mark.parametrize("cut", [(90,), (25, 90), (20, 27, 35, 90)])
def test_a_topic_that_the_next_poll_shows_as_deleted_is_the_cause_of_the_assignment_without_it(
    cut: Sequence[int],
) -> None:
    script = Script()
    script.queues(0, "t", 2)
    script.queues(0, "u", 2)
    polled(script, 10, {"a": BOTH}, {"a": T + U})
    polled(script, 20, {"a": BOTH}, {"a": T})
    script.queues(26, "u", 0)
    polled(script, 30, {"a": BOTH, "b": BOTH}, assigned(a="0", b="1"))
    for clock in cut:
        script.run(clock)
    assert causes(script) == [
        [("queue_count_changed", "u", "2 -> 0, inferred from the assignment")],
        [("member_joined", "b", None)],
    ]
    assert [row.agrees for row in script.rebalances] == [True] * 3
    assert [(row.queues_before, row.queues_after) for row in script.rebalances[1:]] == [(4, 2), (2, 2)]
    assert script.findings() == []


def test_a_topic_that_was_made_again_with_fewer_queues_is_a_cause_once() -> None:
    script = Script()
    script.queues(0, "t", 4, topic_id="x")
    polled(script, 10, {"a": ["t"]}, assigned(a="0 1 2 3"))
    polled(script, 20, {"a": ["t"]}, assigned(a="0 1"))
    script.queues(24, "t", 0)
    script.queues(25, "t", 2, topic_id="y")
    polled(script, 30, {"a": ["t"], "b": ["t"]}, assigned(a="0", b="1"))
    assert causes(script.run(40)) == [
        [("queue_count_changed", "t", "4 -> 2, made again, inferred from the assignment")],
        [("member_joined", "b", None)],
    ]
    assert [row.agrees for row in script.rebalances] == [True] * 3
    assert "t/0 a 10..20" in script.spans("reported")


def test_queues_that_a_cooperative_assignment_leaves_out_are_no_deletion_while_their_topic_has_others() -> None:
    script = Script()
    script.queues(0, "t", 4)
    both, cooperative = {"a": ["t"], "b": ["t"]}, {"strategy": "cooperative-sticky"}
    polled(script, 10, both, assigned(a="0 1", b="2 3"), **cooperative)
    polled(script, 20, both, assigned(a="0 1", b="2"), **cooperative)
    polled(script, 30, both, assigned(a="0 1 3", b="2"), **cooperative)
    assert causes(script.run(40)) == [
        [("unexplained", None, None)],
        [("cooperative_follow_up", None, "1 queue released")],
    ]


def test_a_custom_strategy_may_leave_queues_out() -> None:
    script = Script()
    script.queues(0, "t", 2)
    polled(script, 10, {"a": ["t"]}, assigned(a="0 1"), strategy="ours")
    polled(script, 20, {"a": ["t"]}, assigned(a="0"), strategy="ours")
    assert causes(script.run(30)) == [[("unexplained", None, None)]]


def test_topics_of_the_new_protocol_that_grow_or_are_deleted_are_causes() -> None:
    script = Script()
    script.queues(0, "t", 2)
    script.queues(0, "u", 2)
    of_new_protocol(script, 10, {"a": T, "b": U})
    script.queues(15, "t", 3)
    of_new_protocol(script, 20, {"a": [*T, ("t", 2)], "b": U})
    of_new_protocol(script, 30, {"a": [*T, ("t", 2)], "b": [*U, ("u", 2)]})  # before metadata shows it
    script.queues(35, "u", 3)
    of_new_protocol(script, 40, {"a": [*T, ("t", 2)], "b": [*U, ("u", 2)], "c": []})
    script.queues(50, "u", 0)
    of_new_protocol(script, 50, {"a": T[:1], "b": T[1:], "c": [("t", 2)]})
    assert causes(script.run(60)) == [
        [("queue_count_changed", "t", "2 -> 3")],
        [("queue_count_changed", "u", "2 -> 3")],
        [("member_joined", "c", None)],
        [("queue_count_changed", "u", "3 -> 0")],
    ]
    assert script.rebalances[1].triggers[0].event_id == "e4"


def test_topics_that_the_new_protocol_begins_or_ends_to_assign_are_reported_as_far_as_polls_show_it() -> None:
    script = Script()
    script.queues(0, "t", 2)
    script.queues(0, "u", 2)
    of_new_protocol(script, 10, {"a": T, "b": []})
    of_new_protocol(script, 20, {"a": T, "b": U})
    of_new_protocol(script, 30, {"a": T, "b": [("v", 0), *U]})
    of_new_protocol(script, 40, {"a": T, "b": U})
    assert causes(script.run(60)) == [
        [("subscription_changed", "b", "inferred: nothing of u was assigned before")],
        [("queue_count_changed", "v", "unknown -> 1")],
        [("unexplained", None, "nothing of 1 topic is assigned any more: v")],
    ]


@pytest.mark.parametrize("cut", [(90,), (25, 35, 90)])
def test_members_that_take_long_to_converge_continue_the_rebalance(cut: Sequence[int]) -> None:
    script = Script()
    script.queues(0, "t", 4)
    of_new_protocol(script, 10, assigned(a="0 1 2 3"))
    of_new_protocol(script, 20, assigned(a="0 1 2 3", b=""), "Reconciling")
    of_new_protocol(script, 30, assigned(a="0 1 2", b=""), "Reconciling")
    of_new_protocol(script, 40, assigned(a="0 1", b="2 3"))
    of_new_protocol(script, 50, assigned(a="1 2", b="0 3"))
    for clock in cut:
        script.run(clock)
    assert causes(script) == [
        [("member_joined", "b", None)],
        [("cooperative_follow_up", None, "members had not converged")],
        [("cooperative_follow_up", None, "1 queue released")],
        [("unexplained", None, None)],
    ]
    _, joined, second, third, other = script.rebalances
    assert {one.logical_id for one in (joined, second, third)} == {joined.rebalance_id}
    assert other.logical_id == other.rebalance_id
    assert "unassigned_queues" not in {one.split(" ")[0] for one in script.findings()}


def test_members_that_have_converged_without_another_change_end_the_rebalance() -> None:
    script = Script()
    script.queues(0, "t", 2)
    of_new_protocol(script, 10, assigned(a="0 1"))
    of_new_protocol(script, 20, assigned(a="0", b="1"), "Reconciling")
    of_new_protocol(script, 30, assigned(a="0", b="1"))
    of_new_protocol(script, 40, assigned(a="1", b="0"))
    assert causes(script.run(50)) == [[("member_joined", "b", None)], [("unexplained", None, None)]]


def test_a_topic_with_all_queues_on_the_move_is_not_taken_for_deleted() -> None:
    script = Script()
    script.queues(0, "t", 2)
    script.queues(0, "u", 2)
    of_new_protocol(script, 10, {"a": T + U})
    of_new_protocol(script, 20, {"a": T, "b": []}, "Reconciling")
    of_new_protocol(script, 30, {"a": T, "b": U})
    assert causes(script.run(40)) == [
        [("member_joined", "b", None)],
        [("cooperative_follow_up", None, "2 queues released")],
    ]
    assert [row.queues_after for row in script.rebalances] == [4, 4, 4]


def test_a_poll_during_a_rebalance_shows_that_there_was_one_and_about_when_it_began() -> None:
    script = Script()
    script.queues(0, "t", 1)
    polled(script, 10, {"a": ["t"]}, assigned(a="0"))
    script.snapshot(20, None, {}, state="PreparingRebalance", generation_source="counted")
    polled(script, 30, {"a": ["t"]}, assigned(a="0"))
    polled(script, 40, {"a": ["t"]}, assigned(a="0"))
    assert script.run(50).decided()[1:] == ["30 #2 1->1 unexplained"]
    row = script.rebalances[1]
    assert (row.pause_ms, row.pause_estimated_ms, row.queue_pause_estimated_ms) == (None, 10, 10)


def test_members_prove_the_number_of_the_generation_before_and_so_the_ones_between_two_polls() -> None:
    script = Script()
    script.queues(0, "t", 1)
    polled(script, 10, {"a": ["t"]}, assigned(a="0"), describe={"a": {"owned": (), "owned_generation": 6}})
    polled(script, 20, {"a": ["t"]}, assigned(a="0"), describe={"a": {"owned": (), "owned_generation": 9}})
    script.run(30)
    assert [(row.generation, row.generations_missed) for row in script.rebalances] == [(7, None), (10, 2)]


def test_a_static_member_that_comes_back_under_a_new_id_makes_no_generation() -> None:
    script = Script()
    script.queues(0, "t", 1)
    static = {"instance_id": "i"}
    polled(script, 10, {"i-1": ["t"]}, {"i-1": [("t", 0)]}, describe={"i-1": static})
    polled(script, 20, {"i-2": ["t"]}, {"i-2": [("t", 0)]}, describe={"i-2": static})
    assert len(script.run(30).decided()) == 1
    assert (script.owners(15, "reported"), script.owners(25, "reported")) == ({"t/0": "i-1"}, {"t/0": "i-2"})


def test_the_second_half_of_a_cooperative_rebalance_is_distinguished_from_the_first() -> None:
    script = Script()
    script.queues(0, "t", 2)
    cooperative = {"strategy": "cooperative-sticky"}
    polled(script, 10, {"a": ["t"]}, assigned(a="0 1"), **cooperative)
    polled(script, 20, {"a": ["t"], "b": ["t"]}, assigned(a="0", b=""), **cooperative)
    polled(script, 30, {"a": ["t"], "b": ["t"]}, assigned(a="0", b="1"), **cooperative)
    assert script.run(40).decided()[1:] == ["20 #2 1->2 member_joined:b", "30 #3 2->2 cooperative_follow_up"]


def test_what_waits_in_an_emptied_group_waited_since_it_was_taken() -> None:
    script = Script()
    script.queues(0, "t", 4)
    cooperative = {"strategy": "cooperative-sticky"}
    polled(script, 10, {"a": ["t"]}, assigned(a="0 1 2 3"), **cooperative)
    polled(script, 20, {"a": ["t"], "b": ["t"]}, assigned(a="0 1", b=""), **cooperative)
    polled(script, 30, {})
    polled(script, 50, {"c": ["t"]}, assigned(c="0 1 2 3"), **cooperative)
    script.run(60)
    assert [row.queue_pause_estimated_ms for row in script.rebalances] == [0, None, None, 60]
    assert [row.queue_pause_ms for row in script.rebalances] == [None] * 4


def test_members_without_subscriptions_are_counted_and_not_recomputed() -> None:
    script = Script()
    script.queues(0, "t", 2)
    reported = {name: ["-"] for name in "abc"}
    polled(script, 10, reported, assigned(a="0", b="1"), strategy="uniform")
    (snapshot,) = [one for one in script.waiting if isinstance(one, GroupSnapshot)]
    for member in snapshot.members:
        member.subscriptions = None
    (row,) = script.run(20).rebalances
    assert (row.error, row.agrees, row.agrees_reason) == ("not_recomputable", None, "subscriptions_unknown")
    assert (row.queues_after, row.idle_members) == (2, 1)
    assert script.findings() == ["idle_members 10.."]
    assert script.owners(15, "reported") == {"t/0": "a", "t/1": "b"}


@pytest.mark.parametrize("reported", [3, 2, 1])
def test_the_first_number_that_the_coordinator_reports_takes_the_place_of_counted_ones(reported: int) -> None:
    script = Script()
    script.queues(0, "t", 2)
    polled(script, 10, {"a": ["t"]}, assigned(a="0 1"))
    polled(script, 20, {"a": ["t"], "b": ["t"]}, assigned(a="0", b="1"))
    script.snapshot(30, reported, {"a": ["t"]}, assigned(a="0 1"), strategy="range")
    row = script.run(40).rebalances[2]
    assert script.decided()[2] == f"30 #{reported} 2->1 member_gone:b"
    assert (row.generation_source, row.observed_by, row.generations_missed) == ("reported", None, None)


def test_polls_after_reported_generations_go_on_counting_from_there() -> None:
    script = Script()
    script.queues(0, "t", 2)
    script.snapshot(10, 57, {"a": ["t"]}, assigned(a="0 1"), strategy="range")
    polled(script, 20, {"a": ["t"]}, assigned(a="0 1"))
    polled(script, 30, {"a": ["t"], "b": ["t"]}, assigned(a="0", b="1"))
    script.run(40)
    sources = [(row.generation, row.generation_source) for row in script.rebalances]
    assert sources == [(57, "reported"), (58, "counted")]


def test_an_older_poll_that_comes_late_changes_nothing() -> None:
    script = Script()
    script.queues(0, "t", 1)
    polled(script, 20, {"a": ["t"]}, assigned(a="0"))
    script.run(30)
    polled(script, 10, {"b": ["t"]}, assigned(b="0"))
    assert len(script.run(40).decided()) == 1


def test_a_state_of_the_release_before_was_not_polled() -> None:
    assert not Script().group.polled


def test_a_restored_snapshot_and_a_poll_of_clients_are_none_of_these() -> None:
    common = {"schema_version": 1, "event_time": 0, "system": "kafka", "cluster": "c", "group": "g"}
    assert is_polled(GroupSnapshot(**common, generation_source="counted"))
    assert not is_polled(GroupSnapshot(**common))
    assert not is_polled(GroupSnapshot(**common, generation_source="counted", restored=True))
