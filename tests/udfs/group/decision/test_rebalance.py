"""Rebalances of a RocketMQ group: its retry topics are allocated like others and never evaluated."""

from __future__ import annotations

from tests.udfs.group.group_script import RETRY, Script, retry_group


def test_a_retry_topic_that_grows_is_deleted_or_was_never_reported_is_quiet() -> None:
    script = retry_group("a", "b", flapping_always=6)
    for number in range(8):
        script.queues(1_000 * (number + 1), RETRY, number % 3)
    script.run(20_000)
    # Real: its queues are assigned anew each time.
    assert script.decided()[1] == f"1000 #2 2->2 queue_count_changed:{RETRY}"
    assert len(script.decided()) == 9
    assert script.findings() == []


def test_other_topics_that_change_as_often_are_flapping() -> None:
    script = retry_group("a", "b", flapping_always=6)
    for number in range(6):
        script.queues(1_000 * (number + 1), "t", 5 + number % 2)
    assert script.run(20_000).findings() == ["flapping 5000.."]


def test_that_only_some_list_the_retry_topic_is_no_difference() -> None:
    script = Script("rocketmq")
    script.queues(0, "t", 2)
    script.snapshot(10, None, {"a": ("t", RETRY), "b": ("t",)})
    assert script.run(100).findings() == []


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
    reported = [
        change.body.message for change in script.changes if getattr(change.body, "finding", "") == "unassigned_queues"
    ]
    because = " assigns {} to b, which does not subscribe to u. It follows from subscriptions_differ."
    many = "2 queues have no owner, and nobody consumes them: u-2 and -3. AVG" + because.format("them")
    assert reported == [
        "1 queue has no owner, and nobody consumes it: u-1. AVG" + because.format("it"),
        many,
        many,
    ]
