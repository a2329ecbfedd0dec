"""Generations that complete what the one before began."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.udfs.group.group_script import T0, Script, assigned
from udfs.model.events import QueueRef
from udfs.model.journal import FindingOpened
from udfs.model.spans import QueueAssigned

QUEUES = [("t", number) for number in range(4)]


def owned(*numbers: int) -> dict:
    return {"owned": tuple(QueueRef("t", number) for number in numbers)}


def causes(script: Script) -> list[list[tuple[str, str | None]]]:
    return [[(one.kind, one.detail) for one in row.triggers] for row in script.rebalances]


def opened(script: Script) -> list[str]:
    return [one.finding for one in script.bodies(FindingOpened)]


def test_a_member_that_joins_again_before_it_has_released_its_queues_makes_a_generation_of_its_own() -> None:
    script = Script()
    script.queues(0, "t", 4)
    both = {"a": ["t"], "b": ["t"]}
    rules = {"strategy": "cooperative-sticky", "leader": "a"}
    of_library = {"client_library": "kafka-python"}
    script.snapshot(10, 1, {"a": ["t"]}, {"a": QUEUES}, {"a": of_library}, **rules)
    step = {"a": QUEUES[:2], "b": []}
    script.snapshot(20, 2, both, step, {"a": {**owned(0, 1, 2, 3), **of_library}, "b": owned()}, **rules)
    script.snapshot(30, 3, both, step, {"a": {**owned(0, 1, 2, 3), **of_library}, "b": owned()}, **rules)
    last = {"a": QUEUES[:2], "b": QUEUES[2:]}
    script.snapshot(40, 4, both, last, {"a": {**owned(0, 1), **of_library}, "b": owned()}, **rules)
    script.run(100)
    assert causes(script)[2:] == [
        [("cooperative_follow_up", "2 queues not released yet")],
        [("cooperative_follow_up", "2 queues released")],
    ]
    assert [row.agrees for row in script.rebalances] == [True] * 4
    assert opened(script) == []


def test_unclaimed_queues_without_an_owner_are_a_finding() -> None:
    script = Script()
    script.queues(0, "t", 4)
    rules = {"strategy": "cooperative-sticky", "leader": "a"}
    both = {"a": ["t"], "b": ["t"]}
    script.snapshot(10, 1, {"a": ["t"]}, {"a": QUEUES}, **rules)
    for at, generation in ((20, 2), (30, 3)):
        described = {"a": owned(0, 1) if generation == 3 else owned(0, 1, 2, 3), "b": owned()}
        script.snapshot(at, generation, both, {"a": QUEUES[:2], "b": []}, described, **rules)
    script.run(100)
    assert "unassigned_queues" in opened(script)


def test_a_leader_that_learns_of_a_topic_makes_a_generation() -> None:
    script = Script()
    script.queues(0, "t", 4)
    described = {"a": {"client_library": "kafka-python"}}
    rules = {"strategy": "range", "leader": "a"}
    script.snapshot(10, 1, {"a": ["t"]}, {"a": []}, described, **rules)
    script.snapshot(20, 2, {"a": ["t"]}, {"a": QUEUES}, described, **rules)
    script.run(100)
    assert causes(script)[1] == [("unexplained", "inferred: the leader of the generation before had no metadata of it")]
    assert [(row.agrees, row.agrees_reason) for row in script.rebalances] == [
        (None, "leader_metadata_stale"),
        (True, None),
    ]
    assert "expected_differs" not in opened(script)


def test_the_first_step_of_streams_leaves_queues_for_the_second() -> None:
    script = Script()
    script.queues(0, "t", 4)
    rules = {"strategy": "stream", "leader": "a"}
    script.snapshot(10, 1, {"a": ["t"]}, {"a": []}, **rules)
    script.snapshot(20, 2, {"a": ["t"]}, {"a": QUEUES}, **rules)
    script.snapshot(30, 3, {"a": ["t"]}, {"a": QUEUES[:3]}, **rules)
    script.snapshot(40, 4, {"a": ["t"]}, {"a": QUEUES[:3]}, **rules)
    script.run(35)
    assert causes(script)[1] == [("cooperative_follow_up", "4 queues released")]
    assert opened(script) == []
    assert {row.agrees_reason for row in script.rebalances} == {"custom_strategy"}
    # One that stays without an owner is a finding after all.
    assert opened(script.run(100)) == ["unassigned_queues"]


def logical_parts(script: Script) -> list[int]:
    """Return for each generation after the first which one began its logical rebalance."""
    numbers = {row.rebalance_id: row.generation for row in script.rebalances}
    return [numbers[row.logical_id or ""] for row in script.rebalances[1:]]


def pauses(script: Script) -> dict[tuple[str, int, int], int | None]:
    """Return the pause of each reported span after the first generation, by owner, queue and beginning."""
    bodies = [change.body for change in script.changes]
    return {
        (body.member_id, body.queue_id, body.valid_from - T0): body.pause_ms
        for body in bodies
        if isinstance(body, QueueAssigned) and body.origin == "reported" and body.generation > 1
    }


def joined_meanwhile(*, claims: bool = False, middle: Mapping[str, object] | None = None) -> Script:
    """Return a move that a third member interrupts: generation 2 takes two queues, 3 gives none of them, 4 all."""
    script = Script()
    script.queues(0, "t", 4)
    rules = {"strategy": "cooperative-sticky", "leader": "a"}
    script.snapshot(1_000, 1, {"a": ["t"]}, assigned(a="0 1 2 3"), **rules)
    script.snapshot(2_000, 2, {"a": ["t"], "b": ["t"]}, assigned(a="0 1", b=""), **rules)
    three = {"a": ["t"], "b": ["t"], "c": ["t"]}
    described = {"a": owned(0, 1, 2, 3), "b": owned(), "c": owned()} if claims else None
    third = {"assignments": assigned(a="0 1", b="", c=""), **(middle or {})}
    script.snapshot(3_500, 3, three, describe=described, joined_at=T0 + 3_400, **third, **rules)
    last = {"a": owned(0, 1), "b": owned(), "c": owned()} if claims else None
    script.snapshot(5_000, 4, three, assigned(a="0 1", b="2", c="3"), last, joined_at=T0 + 4_900, **rules)
    return script


CUTS = [(9_000,), (1_500, 2_500, 4_000, 9_000), (3_000, 9_000), (4_500, 9_000)]


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("claims", [False, True])
def test_queues_that_a_generation_between_did_not_give_waited_since_they_were_taken(
    cut: tuple[int, ...], claims: bool
) -> None:
    script = joined_meanwhile(claims=claims)
    for clock in cut:
        script.run(clock)
    assert causes(script)[2:] == [[("member_joined", None)], [("cooperative_follow_up", "2 queues released")]]
    assert logical_parts(script) == [2, 2, 2]
    assert pauses(script) == {("b", 2, 5_000): 3_000, ("c", 3, 5_000): 3_000}
    assert [row.queue_pause_ms for row in script.rebalances[1:]] == [None, None, 6_000]
    assert "unassigned_queues" not in opened(script)
    assert script.group.revoked_pending == []
    assert script.group.waiting_since == {}


@pytest.mark.parametrize("cut", CUTS)
def test_a_generation_that_gives_some_and_takes_others_has_the_pause_of_those_it_gives(cut: tuple[int, ...]) -> None:
    script = Script()
    script.queues(0, "t", 6)
    rules = {"strategy": "cooperative-sticky", "leader": "a"}
    two, three = {"a": ["t"], "b": ["t"]}, {"a": ["t"], "b": ["t"], "c": ["t"]}
    script.snapshot(1_000, 1, {"a": ["t"]}, assigned(a="0 1 2 3 4 5"), **rules)
    script.snapshot(2_000, 2, two, assigned(a="0 1 2", b=""), **rules)
    script.snapshot(3_500, 3, three, assigned(a="0 1", b="3 4", c=""), joined_at=T0 + 3_400, **rules)
    claims = {"a": owned(0, 1, 2), "b": owned(3, 4), "c": owned()}
    script.snapshot(5_000, 4, three, assigned(a="0 1", b="3 4", c="5"), claims, joined_at=T0 + 4_900, **rules)
    script.snapshot(6_000, 5, three, assigned(a="0 1", b="3 4", c="5 2"), joined_at=T0 + 5_900, **rules)
    for clock in cut:
        script.run(clock)
    assert logical_parts(script) == [2, 2, 2, 2]
    assert pauses(script) == {
        ("b", 3, 3_500): 1_500,
        ("b", 4, 3_500): 1_500,
        ("c", 5, 5_000): 3_000,
        ("c", 2, 6_000): 2_500,
    }
    assert [row.queue_pause_ms for row in script.rebalances[1:]] == [None, 3_000, 3_000, 2_500]
    assert "unassigned_queues" not in opened(script)


@pytest.mark.parametrize("cut", CUTS)
def test_after_a_generation_without_an_assignment_the_length_of_the_wait_is_not_observed(
    cut: tuple[int, ...],
) -> None:
    script = joined_meanwhile(middle={"assignments": None})
    for clock in cut:
        script.run(clock)
    assert causes(script)[3] == [("cooperative_follow_up", "2 queues released")]
    assert logical_parts(script) == [2, 2, 2]
    assert pauses(script) == {("b", 2, 5_000): None, ("c", 3, 5_000): None}
    assert [row.queue_pause_ms for row in script.rebalances[1:]] == [None, None, None]


@pytest.mark.parametrize("cut", CUTS)
def test_queues_wait_on_where_all_members_depart_before_they_are_given_to_one(cut: tuple[int, ...]) -> None:
    script = Script()
    script.queues(0, "t", 4)
    rules = {"strategy": "cooperative-sticky", "leader": "a"}
    script.snapshot(1_000, 1, {"a": ["t"]}, assigned(a="0 1 2 3"), **rules)
    script.snapshot(2_000, 2, {"a": ["t"], "b": ["t"]}, assigned(a="0 1", b=""), **rules)
    script.snapshot(3_500, 3, {}, state="Empty")
    script.snapshot(5_000, 4, {"c": ["t"]}, assigned(c="0 1 2 3"), joined_at=T0 + 4_900, **rules)
    for clock in cut:
        script.run(clock)
    assert causes(script)[3] == [("member_joined", None)]  # no member was left that it would follow
    assert logical_parts(script) == [2, 3, 4]
    of_joined = {queue: pause for (member, queue, _), pause in pauses(script).items() if member == "c"}
    assert of_joined == {0: None, 1: None, 2: 3_000, 3: 3_000}
    assert [row.queue_pause_ms for row in script.rebalances[1:]] == [None, None, 6_000]
    assert script.group.revoked_pending == []
    assert script.findings() == []


def test_what_waits_in_an_emptied_group_is_no_evidence_of_a_topic_that_was_made_again_smaller() -> None:
    script = Script()
    script.queues(0, "t", 4)
    rules = {"strategy": "cooperative-sticky", "leader": "a"}
    script.snapshot(1_000, 1, {"a": ["t"]}, assigned(a="0 1 2 3"), **rules)
    script.snapshot(2_000, 2, {"a": ["t"], "b": ["t"]}, assigned(a="0 1", b=""), **rules)
    script.snapshot(3_500, 3, {}, state="Empty")
    script.queues(4_000, "t", 0)
    script.queues(4_100, "t", 2)
    script.snapshot(5_000, 4, {"c": ["t"]}, assigned(c="0 1"), **rules)
    row = script.run(9_000).rebalances[3]
    assert (row.queues_after, row.agrees, row.unassigned_queues) == (2, True, 0)
    assert script.group.revoked_pending == []


@pytest.mark.parametrize("cut", CUTS)
def test_queues_wait_on_while_the_members_of_a_counted_generation_have_no_common_strategy(cut: tuple[int, ...]) -> None:
    script = Script()
    script.queues(0, "t", 4)
    how = {"strategies": ("cooperative-sticky",)}
    script.join(1_000, "a", **how)
    script.join(2_000, "b", **how)
    script.join(3_500, "x", strategies=("range",))
    reported = {"strategy": "cooperative-sticky", "joined_at": T0 + 4_900}
    script.snapshot(5_000, 9, {"a": ["t"], "b": ["t"]}, assigned(a="0 1", b="2 3"), **reported)
    for clock in cut:
        script.run(clock)
    assert [(row.status, row.generation) for row in script.rebalances[1:]] == [
        ("completed", 2),
        ("failed", 3),
        ("completed", 9),
    ]
    assert logical_parts(script) == [2, 2, 2]
    assert causes(script)[3] == [("member_gone", None), ("cooperative_follow_up", "2 queues released")]
    assert {queue: pause for (_, queue, _), pause in pauses(script).items()} == {0: None, 1: None, 2: 3_000, 3: 3_000}
    # Until then nobody has them.
    assert {"unassigned_queues 3500..5000", "strategy_failed 3500..5000"} <= set(script.findings())


@pytest.mark.parametrize("last", ["x", "b"])
def test_a_counted_generation_that_gives_what_was_taken_continues_the_rebalance(last: str) -> None:
    script = Script()
    script.queues(0, "t", 4)
    how = {"strategies": ("cooperative-sticky",)}
    script.join(1_000, "a", **how)
    script.join(2_000, "b", **how)
    if last == "x":
        script.join(3_000, "x", strategies=("range",))
    script.leave(4_000, last)
    script.run(9_000)
    assert script.rebalances[-1].queues_assigned == 2
    assert set(logical_parts(script)) == {2}


def test_a_counted_group_that_becomes_empty_and_is_joined_again_begins_another_rebalance() -> None:
    script = Script()
    script.queues(0, "t", 4)
    how = {"strategies": ("cooperative-sticky",)}
    script.join(1_000, "a", **how)
    script.join(2_000, "b", **how)
    script.leave(3_000, "a")
    script.leave(3_000, "b")
    waits = {("t", None, 2): T0 + 2_000, ("t", None, 3): T0 + 2_000}
    assert script.run(3_500).group.waiting_since == waits
    script.join(4_000, "c", **how)
    script.run(9_000)
    assert logical_parts(script) == [2, 3, 4]
    assert (script.group.revoked_pending, script.group.waiting_since) == ([], {})


def test_a_generation_that_changes_nothing_ends_the_wait() -> None:
    script = joined_meanwhile()
    script.run(4_000)
    rules = {"strategy": "cooperative-sticky", "leader": "a"}
    script.waiting.clear()
    script.snapshot(5_000, 4, {name: ["t"] for name in "abc"}, assigned(a="0 1", b="", c=""), **rules)
    script.run(9_000)
    assert "unassigned_queues" in opened(script)
    assert script.group.revoked_pending == []


def test_the_wait_of_a_queue_ends_with_its_topic() -> None:
    script = joined_meanwhile()
    script.run(4_000)
    script.waiting.clear()
    rules = {"strategy": "cooperative-sticky", "leader": "a"}
    script.queues(4_500, "u", 1)
    script.snapshot(5_000, 4, {name: ["u"] for name in "abcd"}, assigned(a="", b="", c="", d=""), **rules)
    script.run(9_000)
    assert script.group.revoked_pending == []
    assert script.group.waiting_since == {}
