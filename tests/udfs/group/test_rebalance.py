"""Rebalances of a RocketMQ group: its retry topics are allocated like others and never evaluated."""

from __future__ import annotations

from tests.udfs.group.group_script import Script

RETRY = "%RETRY%g"


def group_of(*members: str, topics: tuple[str, ...] = ("t", RETRY)) -> Script:
    script = Script("rocketmq")
    script.queues(0, "t", 4)
    script.queues(0, RETRY, 1)
    script.snapshot(10, None, dict.fromkeys(members, topics))
    return script


def test_the_retry_topic_is_allocated_and_a_member_that_holds_nothing_of_it_is_not_idle() -> None:
    script = group_of("a", "b", "c", "d").run(100)
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


def test_a_retry_topic_that_grows_is_deleted_or_was_never_reported_is_quiet() -> None:
    script = group_of("a", "b")
    for number in range(8):
        script.queues(1_000 * (number + 1), RETRY, number % 3)
    script.run(20_000)
    # Real: its queues are assigned anew each time.
    assert script.decided()[1] == f"1000 #2 2->2 queue_count_changed:{RETRY}"
    assert len(script.decided()) == 9
    assert script.findings() == []


def test_other_topics_that_change_as_often_are_flapping() -> None:
    script = group_of("a", "b")
    for number in range(6):
        script.queues(1_000 * (number + 1), "t", 5 + number % 2)
    assert script.run(20_000).findings() == ["flapping 5000.."]


def test_that_only_some_list_the_retry_topic_is_no_difference() -> None:
    script = Script("rocketmq")
    script.queues(0, "t", 2)
    script.snapshot(10, None, {"a": ("t", RETRY), "b": ("t",)})
    assert script.run(100).findings() == []


def test_in_other_systems_it_is_a_topic_like_others() -> None:
    script = Script("metaq")
    script.queues(0, RETRY, 1)
    script.snapshot(10, None, {"a": (RETRY,), "b": (RETRY,)})
    assert script.run(100).rebalances[0].idle_members == 1


def test_sentences_know_one_from_many() -> None:
    script = Script("rocketmq")
    script.queues(0, "t", 4)
    script.queues(0, "u", 2)
    # RocketMQ allocates u over both; the slice of a member that does not subscribe has no owner.
    script.snapshot(10, None, {"a": ("t", "u"), "b": ("t",)})
    script.queues(1_000, "u", 4)
    script.snapshot(2_000, None, {"a": ("t",), "b": ("t",)})
    script.snapshot(3_000, None, {"a": ("t", "u"), "b": ("t",)})
    script.run(4_000)
    told = [
        change.body.message for change in script.changes if getattr(change.body, "finding", "") == "unassigned_queues"
    ]
    assert told == [
        "1 queue of a subscribed topic has no owner: its messages are not consumed.",
        "2 queues of subscribed topics have no owner: their messages are not consumed.",
    ]
