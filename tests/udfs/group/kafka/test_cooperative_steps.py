"""Generations that complete what the one before began."""

from tests.udfs.group.group_script import Script
from udfs.model.events import QueueRef
from udfs.model.journal import FindingOpened

QUEUES = [("t", number) for number in range(4)]


def owned(*numbers: int) -> dict:
    return {"owned": tuple(QueueRef("t", number) for number in numbers)}


def causes(script: Script) -> list[list[tuple[str, str | None]]]:
    return [[(one.kind, one.detail) for one in row.triggers] for row in script.rebalances]


def opened(script: Script) -> list[str]:
    return [one.body.finding for one in script.written if isinstance(one.body, FindingOpened)]


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
    assert causes(script)[1] == [("queue_count_changed", "the leader had no metadata of it")]
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
