"""Topics of classic groups that are deleted, and made again: by deleted commits, and by metadata."""

from __future__ import annotations

import pytest

from tests.udfs.group.group_script import T0, Script, assigned
from udfs.model.events import CommitsDeleted, QueueRef

GROUP = {"a": ["t", "u"], "b": ["t", "u"]}
BEFORE = assigned(a="0 1", b="2 3")


def group(*, queues: int = 4) -> Script:
    """Return a group of range whose members have two queues of ``t`` each."""
    script = Script()
    script.queues(0, "t", queues, topic_id="one")
    script.queues(0, "u", 0)
    script.snapshot(10, 1, GROUP, BEFORE, strategy="range")
    return script


def delete_commits(script: Script, at: int, topic: str = "t") -> None:
    for number in range(4):
        script.event(CommitsDeleted, at, queues=(QueueRef(topic, number),))


def details(script: Script) -> list[tuple[int, list[str | None]]]:
    return [(row.event_time - T0, [one.detail for one in row.triggers]) for row in script.rebalances[1:]]


@pytest.mark.parametrize(
    ("held", "count"), [({"a": "0 1", "b": "2 3"}, 4), ({"a": "0 1 2", "b": "3 4 5"}, 6), ({"a": "0", "b": "1"}, 2)]
)
@pytest.mark.parametrize("clocks", [(100,), (19, 21, 26, 41, 100)])
def test_the_generation_after_deleted_commits_is_of_the_new_topic(
    held: dict[str, str], count: int, clocks: tuple[int, ...]
) -> None:
    script = group()
    delete_commits(script, 20)
    script.snapshot(25, 2, GROUP, assigned(**held), strategy="range")
    script.queues(39, "t", 0)
    script.queues(40, "t", count, topic_id="two")
    script.snapshot(60, 3, {"a": ["t", "u"]}, assigned(a=" ".join(map(str, range(count)))), strategy="range")
    for clock in clocks:
        script.run(clock)
    assert script.decided()[1:] == ["25 #2 2->2 queue_count_changed:t", "60 #3 2->1 member_gone:b"]
    assert details(script)[0] == (25, [f"4 -> {count}, made again"])
    assert [row.agrees for row in script.rebalances] == [True] * 3
    row = script.rebalances[1]
    assert (row.queues_kept, row.queues_moved, row.queues_revoked, row.queues_assigned) == (0, 0, 4, count)
    for origin in ("reported", "computed"):
        spans = [span for span in script.spans(origin) if span.startswith("t/0")]
        assert spans == ["t/0 a 10..25", "t/0 a 25.."]
    assert script.findings() == []


def test_the_deletion_of_a_topic_is_a_cause_of_its_own_before_metadata_shows_it() -> None:
    script = group()
    delete_commits(script, 20)
    script.snapshot(25, 2, GROUP, {}, strategy="range")
    script.snapshot(30, 3, GROUP, assigned(a="0", b="1"), strategy="range")
    script.queues(40, "t", 2, topic_id="two")
    script.run(50)
    assert details(script) == [(25, ["4 -> 0"]), (30, ["0 -> 2"])]
    assert [row.agrees for row in script.rebalances] == [True] * 3
    assert script.findings() == []


def test_metadata_alone_shows_it_where_the_generation_comes_later() -> None:
    script = group()
    script.queues(19, "t", 0)
    script.queues(20, "t", 4, topic_id="two")
    script.snapshot(25, 2, GROUP, BEFORE, strategy="range")
    script.snapshot(30, 3, {"a": ["t", "u"]}, assigned(a="0 1 2 3"), strategy="range")
    script.run(50)
    assert details(script)[0] == (25, ["4 -> 4, made again"])
    assert script.decided()[2:] == ["30 #3 2->1 member_gone:b"]
    assert script.rebalances[1].agrees is True


def test_commits_of_other_topics_and_of_groups_without_members_are_no_cause() -> None:
    script = group()
    delete_commits(script, 20, "other")
    script.snapshot(25, 2, {"a": ["t", "u"]}, assigned(a="0 1 2 3"), strategy="range")
    script.snapshot(30, 3, {}, {}, strategy="range")
    delete_commits(script, 40)
    script.snapshot(50, 4, {"a": ["t", "u"]}, assigned(a="0 1 2 3"), strategy="range")
    script.run(60)
    kinds = [[one.kind for one in row.triggers] for row in script.rebalances[1:]]
    assert kinds == [["member_gone"], ["member_gone"], ["member_joined"]]


@pytest.mark.parametrize(
    ("held", "cause", "kept"),
    [
        ({}, ("queue_count_changed", "4 -> 0, inferred from the assignment"), 0),
        ({"a": "0", "b": "1"}, ("queue_count_changed", "4 -> 2, made again, inferred from the assignment"), 0),
        ({"a": "0 1", "b": "2 3"}, ("unexplained", None), 4),
    ],
)
def test_an_assignment_that_leaves_out_queues_for_no_other_cause_is_of_another_topic(
    held: dict[str, str], cause: tuple[str, str | None], kept: int
) -> None:
    script = group()
    script.snapshot(25, 2, GROUP, assigned(**held), strategy="range", event_id="second")
    row = script.run(50).rebalances[1]
    (found,) = row.triggers
    assert (found.kind, found.detail) == cause
    assert found.event_id == "second"
    assert (row.queues_kept, row.agrees) == (kept, True)


def test_queues_that_a_departure_explains_are_those_of_the_same_topic() -> None:
    script = group()
    script.snapshot(25, 2, {"a": ["t", "u"]}, assigned(a="0 1"), strategy="range")
    assert script.run(50).decided()[1] == "25 #2 2->1 member_gone:b"
