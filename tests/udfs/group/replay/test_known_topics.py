"""The topics of a history answer as those of a shard do."""

from __future__ import annotations

from udfs.group.replay.known_topics import KnownTopics
from udfs.model.events import TopicQueues, event_fields
from udfs.model.queues import numbered


def topic(at: int, count: int, topic_id: str | None = None, name: str = "t") -> TopicQueues:
    return TopicQueues(**event_fields("kafka", "c", at), topic=name, queue_count=count, topic_id=topic_id)


def test_a_topic_has_the_queues_of_its_newest_change() -> None:
    topics = KnownTopics([topic(20, 3), topic(10, 2), topic(30, 0)])
    assert [topics.at("t", at) for at in (9, 10, 19, 20, 30)] == [None, numbered(2), numbered(2), numbered(3), ()]
    assert (topics.before("t", 20), topics.before("t", 10)) == (numbered(2), None)
    assert (topics.first_description("t"), topics.first_description("u")) == (numbered(2), None)
    assert (topics.has_any(9), topics.has_any(10), KnownTopics([]).has_any(10)) == (False, True, False)


def test_a_topic_that_is_made_again_is_another_one() -> None:
    topics = KnownTopics([topic(10, 2, "a"), topic(20, 2, "b"), topic(30, 0), topic(40, 1, "c")])
    assert [topics.topic_id("t", at) for at in (9, 10, 20, 40)] == [None, "a", "b", "c"]
    assert [topics.renewed_at("t", at) for at in (10, 19, 20, 30, 45)] == [None, None, 20, 30, 40]
    assert [topics.appeared_at("t", at) for at in (9, 10, 35, 40)] == [None, 10, 10, 40]
