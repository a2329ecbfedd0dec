"""Topics that grew, and that no generation follows; ``tests/corners/growth_not_followed.json`` has more."""

from __future__ import annotations

from tests.udfs.group.group_script import T0, Script, assigned
from udfs.group.assignment.metadata_age import METADATA_MAX_AGE_MS

GROWN_AT = 20
DUE_AT = GROWN_AT + METADATA_MAX_AGE_MS


def _grown(queues: int = 3, members: str = "a", **held: str) -> Script:
    script = Script("kafka")
    script.queues(0, "t", 2)
    script.snapshot(10, 1, {one: ["t"] for one in members}, assigned(**(held or {"a": "0 1"})), strategy="range")
    script.queues(GROWN_AT, "t", queues)
    return script


def test_new_queues_count_once_the_metadata_of_all_members_must_show_them() -> None:
    script = _grown().run(DUE_AT)
    assert (script.row().queues, script.row().unassigned_queues) == (2, 0)
    assert script.last.wake_at == T0 + DUE_AT
    script.run(DUE_AT + 1)
    assert (script.row().queues, script.row().unassigned_queues, script.row().spread) == (3, 1, 0)
    assert script.findings() == [f"unassigned_queues {DUE_AT}.."]
    assert script.last.wake_at is None, "once"
    assert [row.generation for row in script.rebalances] == [1], "it is no rebalance"


def test_fewer_queues_than_before_are_none_without_an_owner() -> None:
    script = _grown(1).run(DUE_AT + 1)
    assert (script.row().queues, script.row().unassigned_queues) == (2, 0)
    assert script.findings() == []


def test_a_second_growth_counts_at_its_own_time() -> None:
    script = _grown()
    script.queues(DUE_AT - 1_000, "t", 5)
    script.run(DUE_AT + 1)
    assert script.row().queues == 5, "what metadata shows by then"
    later = DUE_AT - 1_000 + METADATA_MAX_AGE_MS
    script.run(later + 1)
    assert (script.row().queues, script.row().unassigned_queues) == (5, 3)
    assert script.findings() == [f"unassigned_queues {DUE_AT}.."]


def test_a_group_of_counted_generations_follows_at_once() -> None:
    script = Script("kafka")
    script.queues(0, "t", 2)
    script.join(10, "a", session_timeout_ms=10**7)
    script.queues(GROWN_AT, "t", 3)
    script.run(DUE_AT + 1)
    assert (script.row().queues, script.row().unassigned_queues) == (3, 0)
    assert script.findings() == []
