"""For how long a reported generation stopped its members."""

from __future__ import annotations

from tests.udfs.group.group_script import T0, Script, assigned
from udfs.model.journal import Rebalanced
from udfs.model.spans import QueueAssigned


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


def test_an_eager_generation_after_the_first_half_of_a_cooperative_move_has_the_pause_of_what_waited_too() -> None:
    script = Script()
    script.queues(0, "t", 4)
    both = {"a": ["t"], "b": ["t"]}
    script.snapshot(1_000, 1, {"a": ["t"]}, assigned(a="0 1 2 3"), strategy="cooperative-sticky", joined_at=T0 + 990)
    script.snapshot(5_000, 2, both, assigned(a="0 1", b=""), strategy="cooperative-sticky", joined_at=T0 + 4_950)
    script.snapshot(7_000, 3, both, assigned(a="0 1", b="2 3"), strategy="range", joined_at=T0 + 6_900)
    script.run(9_000)
    # Two queues for 100 ms, and two since the first half.
    assert [row.queue_pause_ms for row in script.rebalances] == [0, None, 2 * 100 + 2 * 2_000]
    totals = [change.body.queue_pause_ms for change in script.changes if isinstance(change.body, Rebalanced)]
    assert totals == [0, None, 200]


def test_each_queue_that_moved_has_its_pause_and_the_rest_is_the_groups() -> None:
    script = Script()
    script.queues(0, "t", 4)
    script.snapshot(1_000, 1, {"a": ["t"]}, assigned(a="0 1 2 3"), strategy="range", joined_at=T0 + 990)
    both = {"a": ["t"], "b": ["t"]}
    script.snapshot(5_000, 2, both, assigned(a="0 1", b="2 3"), strategy="range", joined_at=T0 + 4_900)
    script.run(6_000)
    assert span_pauses_of(script) == {("a", 0): None, ("a", 1): None, ("a", 2): None, ("a", 3): None} | {
        ("b", 2): 100,
        ("b", 3): 100,
    }
    assert script.rebalances[1].queue_pause_ms == 400
    totals = [change.body.queue_pause_ms for change in script.changes if isinstance(change.body, Rebalanced)]
    assert totals == [0, 200]


def test_a_queue_that_a_cooperative_member_released_was_paused_since() -> None:
    script = Script()
    script.queues(0, "t", 4)
    how = {"strategy": "cooperative-sticky"}
    script.snapshot(1_000, 1, {"a": ["t"]}, assigned(a="0 1 2 3"), joined_at=T0 + 990, **how)
    both = {"a": ["t"], "b": ["t"]}
    script.snapshot(5_000, 2, both, assigned(a="0 1", b=""), joined_at=T0 + 4_950, **how)
    script.snapshot(5_800, 3, both, assigned(a="0 1", b="2 3"), joined_at=T0 + 5_790, **how)
    script.run(6_000)
    pauses = span_pauses_of(script)
    assert (pauses["b", 2], pauses["b", 3]) == (800, 800)
    totals = [change.body.queue_pause_ms for change in script.changes if isinstance(change.body, Rebalanced)]
    assert totals == [0, None, 0]


def span_pauses_of(script: Script) -> dict[tuple[str, int], int | None]:
    """Return the pause of each reported span, by its owner and queue."""
    bodies = [change.body for change in script.changes]
    return {
        (body.member_id, body.queue_id): body.pause_ms
        for body in bodies
        if isinstance(body, QueueAssigned) and body.origin == "reported"
    }
