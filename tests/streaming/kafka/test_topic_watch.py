"""What changed in a cluster's topics between two looks."""

from __future__ import annotations

from streaming.kafka.topic_watch import SeenTopic, TopicWatch
from udfs.events import QueueInfo, TopicQueues


def counts(events: list[TopicQueues]) -> list[tuple[str, int | None, int]]:
    return [(event.topic, event.queue_count, event.event_time) for event in events]


def test_only_what_is_new_is_told() -> None:
    watch = TopicWatch("c")
    assert counts(watch.look({"b": SeenTopic(1), "a": SeenTopic(3)}, 10)) == [("a", 3, 10), ("b", 1, 10)]
    assert watch.look({"b": SeenTopic(1), "a": SeenTopic(3)}, 20) == []
    assert counts(watch.look({"b": SeenTopic(1), "a": SeenTopic(4)}, 30)) == [("a", 4, 30)]


def test_a_topic_that_is_gone_is_told_when_two_looks_agree() -> None:
    watch = TopicWatch("c")
    watch.look({"a": SeenTopic(3), "b": SeenTopic(1)}, 10)
    assert watch.look({"b": SeenTopic(1)}, 20) == []
    assert counts(watch.look({"b": SeenTopic(1)}, 30)) == [("a", 0, 30)]
    assert watch.look({"b": SeenTopic(1)}, 40) == []


def test_a_broker_that_does_not_know_everything_yet_makes_no_change() -> None:
    watch = TopicWatch("c")
    watch.look({"a": SeenTopic(3)}, 10)
    assert watch.look({}, 20) == []
    assert watch.look({"a": SeenTopic(3)}, 30) == []
    assert watch.look({}, 40) == []
    assert watch.look({"a": SeenTopic(2)}, 50) == []
    assert watch.look({"a": SeenTopic(3)}, 60) == []


def test_a_topic_made_anew_with_fewer_partitions_is_told_at_once() -> None:
    watch = TopicWatch("c")
    watch.look({"a": SeenTopic(3, topic_id="one")}, 10)
    (event,) = watch.look({"a": SeenTopic(2, topic_id="two")}, 20)
    assert (event.queue_count, event.topic_id) == (2, "two")


def test_a_topic_that_cannot_be_described_stays_as_it_is() -> None:
    watch = TopicWatch("c")
    watch.look({"a": SeenTopic(3)}, 10)
    assert watch.look({"a": None}, 20) == watch.look({"a": None}, 30) == []


def test_racks_are_told_for_each_queue() -> None:
    racks = (("r1", "r2"), ("r2",))
    (event,) = TopicWatch("c").look({"a": SeenTopic(2, racks)}, 10)
    assert event.queues == (QueueInfo(queue_id=0, racks=racks[0]), QueueInfo(queue_id=1, racks=racks[1]))
    assert event.queue_count is None


def test_a_replica_in_another_rack_is_a_change() -> None:
    watch = TopicWatch("c")
    watch.look({"a": SeenTopic(1, (("r1",),))}, 10)
    assert len(watch.look({"a": SeenTopic(1, (("r2",),))}, 20)) == 1


def test_kafkas_own_topics_are_left_out() -> None:
    assert TopicWatch("c").look({"__consumer_offsets": SeenTopic(50), "__transaction_state": SeenTopic(50)}, 10) == []


def test_after_a_restart_only_what_changed_meanwhile_is_told() -> None:
    before = TopicWatch("c")
    before.look({"a": SeenTopic(3, (("r1",),) * 3, "id"), "b": SeenTopic(1)}, 10)
    after = TopicWatch("c", before.memory())
    assert after.look({"a": SeenTopic(3, (("r1",),) * 3, "id"), "b": SeenTopic(1)}, 20) == []
    assert counts(after.look({"a": SeenTopic(3, (("r1",),) * 3, "id"), "b": SeenTopic(2)}, 30)) == [("b", 2, 30)]
