"""Queues without an owner, and whose they would be."""

from __future__ import annotations

from tests.udfs.group.group_script import Script, assigned
from udfs.model.finding_names import NamedQueue
from udfs.model.journal import FindingOpened


def unread(script: Script) -> tuple[NamedQueue, ...]:
    [body] = [one for one in script.bodies(FindingOpened) if one.finding == "unassigned_queues"]
    queues: tuple[NamedQueue, ...] = body.queues
    return queues


def test_the_slice_of_a_member_without_the_subscription_is_its() -> None:
    script = Script("rocketmq")
    script.queues(0, "t", 2)
    script.queues(0, "u", 4)
    script.snapshot(10, None, {"a": ("t", "u"), "b": ("t",)})
    script.run(20)
    assert unread(script) == tuple(NamedQueue("u", None, number, "b", "not_subscribed") for number in (2, 3))


def test_the_second_slice_of_one_client_id_has_no_owner() -> None:
    script = Script("rocketmq")
    script.queues(0, "t", 4)
    script.poll(10, ("a", "h:1"), ("a", "h:2"))
    script.run(20)
    assert unread(script) == (NamedQueue("t", None, 2), NamedQueue("t", None, 3))


def test_a_queue_that_a_coordinator_left_out_is_its_computed_owners() -> None:
    script = Script()
    script.queues(0, "t", 4)
    script.snapshot(10, 1, {"a": ["t"], "b": ["t"]}, assigned(a="0 1", b="2"), strategy="range")
    script.run(20)
    assert unread(script) == (NamedQueue("t", None, 3, "b", "not_owned"),)
