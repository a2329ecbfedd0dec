"""Generations that complete what the one before began."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.udfs.group.group_script import T0, Script, assigned
from udfs.model.events import QueueRef
from udfs.model.journal import FindingOpened
from udfs.model.spans import QueueAssigned


def owned(*numbers: int) -> dict:
    return {"owned": tuple(QueueRef("t", number) for number in numbers)}


def causes(script: Script) -> list[list[tuple[str, str | None]]]:
    return [[(one.kind, one.detail) for one in row.triggers] for row in script.rebalances]


def opened(script: Script) -> list[str]:
    return [one.finding for one in script.bodies(FindingOpened)]


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
