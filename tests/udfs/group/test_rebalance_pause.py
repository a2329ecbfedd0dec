"""For how long a reported generation stopped its members."""

from __future__ import annotations

from tests.udfs.group.group_script import T0, Script, assigned


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
