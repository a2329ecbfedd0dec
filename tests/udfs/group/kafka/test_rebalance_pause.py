"""For how long a reported generation stopped its members."""

from __future__ import annotations

from tests.udfs.group.group_script import T0, Script, assigned
from udfs.model.journal import Rebalanced
from udfs.model.spans import QueueAssigned


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


def span_pauses_of(script: Script) -> dict[tuple[str, int], int | None]:
    """Return the pause of each reported span, by its owner and queue."""
    bodies = [change.body for change in script.changes]
    return {
        (body.member_id, body.queue_id): body.pause_ms
        for body in bodies
        if isinstance(body, QueueAssigned) and body.origin == "reported"
    }
