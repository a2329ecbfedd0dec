"""Generations that complete what the one before began."""

from __future__ import annotations

from collections.abc import Mapping

from tests.udfs.group.group_script import T0, Script, assigned
from udfs.model.events import QueueRef
from udfs.model.journal import FindingOpened
from udfs.model.spans import QueueAssigned


def owned(*numbers: int) -> dict:
    return {"owned": tuple(QueueRef("t", number) for number in numbers)}


def opened(script: Script) -> list[str]:
    return [opened_finding.finding for opened_finding in script.bodies(FindingOpened)]


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
