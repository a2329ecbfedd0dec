"""How evenly members hold queues: topics for retries are not evaluated."""

from __future__ import annotations

from tests.udfs.group.group_script import RETRY, Script, retry_group
from udfs.model.events import QueueInfo


def test_the_retry_topic_is_allocated_and_a_member_that_holds_nothing_of_it_is_not_idle() -> None:
    script = retry_group("a", "b", "c", "d").run(100)
    assert script.owners(50) == {f"{RETRY}/0": "a", "t/0": "a", "t/1": "b", "t/2": "c", "t/3": "d"}
    [row] = script.rebalances
    assert (row.queues_after, row.idle_members, row.unassigned_queues, row.spread) == (5, 0, 0, 0)
    assert script.findings() == []


def test_a_member_that_holds_only_the_retry_queue_is_idle() -> None:
    script = Script("rocketmq")
    script.queues(0, "t", 1)
    script.queues(0, RETRY, 2)
    script.snapshot(10, None, {"a": ("t", RETRY), "b": ("t", RETRY)})
    script.run(100)
    assert script.rebalances[0].idle_members == 1
    assert script.findings() == ["idle_members 10.."]


def test_in_other_systems_it_is_a_topic_like_others() -> None:
    script = Script("metaq")
    script.queues(0, RETRY, 1)
    script.snapshot(10, None, {"a": (RETRY,), "b": (RETRY,)})
    assert script.run(100).rebalances[0].idle_members == 1


def test_more_members_than_queues_leave_some_idle() -> None:
    script = Script()
    script.queues(0, "t", 1)
    script.join(10, "a")
    script.join(10, "b")
    script.leave(20, "b")
    script.run(30)
    assert [row.idle_members for row in script.rebalances] == [1, 0]
    assert script.findings() == ["idle_members 10..20"]


def test_by_message_every_subscriber_takes_from_the_whole_broker_and_none_is_idle() -> None:
    script = Script("rocketmq")
    script.queues(0, "t", queues=(QueueInfo(0, "x"), QueueInfo(1, "x"), QueueInfo(0, "y")))
    script.settings(0, mode="message")
    script.join(10, "a")
    script.join(10, "b")
    row = script.run(20).rebalances[0]
    assert script.owners(10) == {"t/x--1": "a+b", "t/y--1": "a+b"}
    assert (row.unassigned_queues, row.idle_members, row.queues_after) == (0, 0, 3)


def test_a_member_that_subscribes_to_the_retry_topic_alone_or_to_nothing_is_not_idle() -> None:
    script = Script("rocketmq")
    script.queues(0, "t", 1)
    script.queues(0, RETRY, 1)
    script.snapshot(10, None, {"a": ("t", RETRY), "b": (RETRY,), "c": ()})
    assert script.run(100).rebalances[0].idle_members == 0
