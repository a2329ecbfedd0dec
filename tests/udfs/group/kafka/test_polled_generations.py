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


def polled(script: Script, at: int, members: dict[str, Sequence[str]], held: Held | None = None, **fields: Any) -> None:
    strategy = {"strategy": "range"} if members else {}
    script.snapshot(at, None, members, held, generation_source="counted", **strategy | fields)


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
    who = {"instance_id": "i"}
    polled(script, 10, {"i-1": ["t"]}, {"i-1": [("t", 0)]}, describe={"i-1": who})
    polled(script, 20, {"i-2": ["t"]}, {"i-2": [("t", 0)]}, describe={"i-2": who})
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


def test_members_without_subscriptions_are_counted_and_not_recomputed() -> None:
    script = Script()
    script.queues(0, "t", 2)
    told = {name: ["-"] for name in "abc"}
    polled(script, 10, told, assigned(a="0", b="1"), strategy="uniform")
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
