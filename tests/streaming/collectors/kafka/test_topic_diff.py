"""Changes of a cluster's topics between two polls."""

from __future__ import annotations

from streaming.collectors.kafka.topic_diff import ObservedTopic, TopicDiff
from udfs.model.events import QueueInfo, TopicQueues


def counts(events: list[TopicQueues]) -> list[tuple[str, int | None, int]]:
    return [(event.topic, event.queue_count, event.event_time) for event in events]


def test_only_what_is_new_is_reported() -> None:
    watch = TopicDiff("c")
    assert counts(watch.diff({"b": ObservedTopic(1), "a": ObservedTopic(3)}, 10)) == [("a", 3, 10), ("b", 1, 10)]
    assert watch.diff({"b": ObservedTopic(1), "a": ObservedTopic(3)}, 20) == []
    assert counts(watch.diff({"b": ObservedTopic(1), "a": ObservedTopic(4)}, 30)) == [("a", 4, 30)]


def test_a_deleted_topic_is_reported_when_two_polls_agree() -> None:
    watch = TopicDiff("c")
    watch.diff({"a": ObservedTopic(3), "b": ObservedTopic(1)}, 10)
    assert watch.diff({"b": ObservedTopic(1)}, 20) == []
    assert counts(watch.diff({"b": ObservedTopic(1)}, 30)) == [("a", 0, 30)]
    assert watch.diff({"b": ObservedTopic(1)}, 40) == []


def test_a_broker_that_does_not_know_everything_yet_makes_no_change() -> None:
    watch = TopicDiff("c")
    watch.diff({"a": ObservedTopic(3)}, 10)
    assert watch.diff({}, 20) == []
    assert watch.diff({"a": ObservedTopic(3)}, 30) == []
    assert watch.diff({}, 40) == []
    assert watch.diff({"a": ObservedTopic(2)}, 50) == []
    assert watch.diff({"a": ObservedTopic(3)}, 60) == []


def test_a_topic_made_anew_with_fewer_partitions_is_reported_at_once() -> None:
    watch = TopicDiff("c")
    watch.diff({"a": ObservedTopic(3, topic_id="one")}, 10)
    reported = watch.diff({"a": ObservedTopic(2, topic_id="two")}, 20)
    assert [(event.event_time, event.queue_count, event.topic_id) for event in reported] == [
        (19, 0, None),
        (20, 2, "two"),
    ]


def test_a_topic_with_an_id_from_now_on_is_the_same_topic() -> None:
    watch = TopicDiff("c")
    watch.diff({"a": ObservedTopic(3)}, 10)
    assert [event.queue_count for event in watch.diff({"a": ObservedTopic(3, topic_id="one")}, 20)] == [3]


def test_a_topic_that_cannot_be_described_stays_as_it_is() -> None:
    watch = TopicDiff("c")
    watch.diff({"a": ObservedTopic(3)}, 10)
    assert watch.diff({"a": None}, 20) == watch.diff({"a": None}, 30) == []


def test_racks_are_reported_for_each_queue() -> None:
    racks = (("r1", "r2"), ("r2",))
    (event,) = TopicDiff("c").diff({"a": ObservedTopic(2, racks)}, 10)
    assert event.queues == (QueueInfo(queue_id=0, racks=racks[0]), QueueInfo(queue_id=1, racks=racks[1]))
    assert event.queue_count is None


def test_a_replica_in_another_rack_is_a_change() -> None:
    watch = TopicDiff("c")
    watch.diff({"a": ObservedTopic(1, (("r1",),))}, 10)
    assert len(watch.diff({"a": ObservedTopic(1, (("r2",),))}, 20)) == 1


def test_kafkas_own_topics_are_left_out() -> None:
    assert (
        TopicDiff("c").diff({"__consumer_offsets": ObservedTopic(50), "__transaction_state": ObservedTopic(50)}, 10)
        == []
    )


def test_after_a_restart_only_what_changed_meanwhile_is_reported() -> None:
    before = TopicDiff("c")
    before.diff({"a": ObservedTopic(3, (("r1",),) * 3, "id"), "b": ObservedTopic(1)}, 10)
    after = TopicDiff("c", before.memory())
    assert after.diff({"a": ObservedTopic(3, (("r1",),) * 3, "id"), "b": ObservedTopic(1)}, 20) == []
    assert counts(after.diff({"a": ObservedTopic(3, (("r1",),) * 3, "id"), "b": ObservedTopic(2)}, 30)) == [
        ("b", 2, 30)
    ]
