"""Topics as every shard keeps them."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.udfs.shard.shard_script import CLUSTER, T0, count
from udfs.model.events import QueueInfo, TopicQueues
from udfs.model.journal import TopicChanged
from udfs.packets.packet import carry_event
from udfs.shard.deduplication import DedupStore
from udfs.shard.topics import MAX_FORMER, MAX_LIVES, Topics, TopicsAtBatch


def apply(topics: Topics, *events: TopicQueues) -> tuple[list[Any], list[Any], list[Any]]:
    repeats = DedupStore(b"", None, 600_000)
    moves, late, _, changes = topics.apply([(event, carry_event(event, "", "")) for event in events], repeats)
    return (
        [(event.topic, event.event_time - T0) for event, _ in moves],
        [(event.topic, event.event_time - T0) for event, _ in late],
        [(change.number, change.body.valid_from - T0, change.body.queue_count) for change in changes],
    )


def plain(queues: int) -> tuple[QueueInfo, ...]:
    return tuple(QueueInfo(index) for index in range(queues))


def test_it_returns_each_event_time_of_the_batch_and_what_was_current_before() -> None:
    topics = Topics(CLUSTER, b"")
    assert topics.at("t", T0) is None
    apply(topics, count("t", 2, 10))
    topics = Topics(CLUSTER, topics.encode())
    apply(topics, count("t", 0, 30), count("t", 4, 20))
    assert [topics.at("t", T0 + at) for at in (5, 10, 19, 20, 29, 30)] == [
        plain(2),
        plain(2),
        plain(2),
        plain(4),
        plain(4),
        (),
    ]
    assert topics.first_description("t") == plain(2)
    assert Topics(CLUSTER, topics.encode()).at("t", T0 + 5) == ()


def test_a_change_shows_the_id_of_its_topic_and_a_new_id_is_a_change() -> None:
    topics = Topics(CLUSTER, b"")
    events = [
        count("t", 2, 10),
        *(msgspec.structs.replace(count("t", 2, at), topic_id=name) for at, name in ((20, "a"), (30, "a"), (40, "b"))),
    ]
    shown = [
        (change.number, change.event_time - T0, change.body.topic_id)
        for event in events
        for change in topics.apply([(event, carry_event(event, "", ""))], DedupStore(b"", None, 600_000))[3]
    ]
    assert shown == [(1, 10, None), (2, 20, "a"), (3, 40, "b")]
    # Groups are given only changes of queues before and after.
    assert topics.before("t", T0 + 40) == plain(2)


def test_former_queues_of_a_topic_are_known_batches_later_up_to_a_limit() -> None:
    topics = Topics(CLUSTER, b"")
    apply(topics, count("t", 1, 10), count("t", 2, 20))
    assert [topics.before("t", T0 + at) for at in (10, 11, 20, 21)] == [None, plain(1), plain(1), plain(2)]
    for number in range(3, MAX_FORMER + 2):
        topics = Topics(CLUSTER, topics.encode())
        apply(topics, count("t", number, 10 * number))
    topics = Topics(CLUSTER, topics.encode())
    before = [topics.before("t", T0 + at) for at in (5, 20, 21, 10 * MAX_FORMER + 11)]
    assert before == [plain(1), plain(1), plain(2), plain(MAX_FORMER + 1)]
    assert TopicsAtBatch(topics, 0).before("t", T0 + 21) == plain(2)
    assert topics.before("u", T0) is None


def test_only_a_change_is_a_change() -> None:
    topics = Topics(CLUSTER, b"")
    moves, late, changes = apply(topics, count("t", 2, 10), count("t", 2, 20), count("t", 3, 30))
    assert (moves, late) == ([("t", 10), ("t", 30)], [])
    assert changes == [(1, 10, 2), (2, 30, 3)]


def test_changes_older_than_the_last_report_are_late_even_if_it_changed_nothing() -> None:
    topics = Topics(CLUSTER, b"")
    apply(topics, count("t", 2, 10), count("t", 2, 20))
    topics = Topics(CLUSTER, topics.encode())
    assert apply(topics, count("t", 9, 19)) == ([], [("t", 19)], [])
    assert apply(topics, count("t", 9, 20))[0] == [("t", 20)]


def test_an_unknown_topic_without_queues_stays_unknown_but_is_a_change_for_groups() -> None:
    topics = Topics(CLUSTER, b"")
    assert apply(topics, count("t", 0, 10)) == ([("t", 10)], [], [])
    assert Topics(CLUSTER, topics.encode()).at("t", T0 + 20) is None


def test_queues_come_by_broker_and_number() -> None:
    topics = Topics(CLUSTER, b"")
    queues = (QueueInfo(1, "b"), QueueInfo(0, "b", rack="r"), QueueInfo(0, "a", racks=("x", "y")))
    event = TopicQueues(
        schema_version=1, event_time=T0, system="rocketmq", cluster=CLUSTER, topic="t", queues=queues, topic_id="id"
    )
    _, _, _, [change] = topics.apply([(event, carry_event(event, "", ""))], DedupStore(b"", None, 1))
    topics = Topics(CLUSTER, topics.encode())
    assert topics.at("t", T0) == (queues[2], queues[1], queues[0])
    assert topics.topic_id("t", T0) == "id"
    assert isinstance(change.body, TopicChanged)
    assert change.body.queues == [
        {"broker": "a", "queue_id": 0, "racks": ["x", "y"]},
        {"broker": "b", "queue_id": 0, "racks": ["r"]},
        {"broker": "b", "queue_id": 1, "racks": []},
    ]


def test_a_thousand_topics_take_few_bytes() -> None:
    topics = Topics(CLUSTER, b"")
    apply(topics, *(count(f"topic-{number:04d}", 20, 0) for number in range(1_000)))
    assert len(topics.encode()) < 20_000


def test_a_name_is_of_one_topic_after_another() -> None:
    topics = Topics(CLUSTER, b"")
    apply(topics, count("t", 4, 10, topic_id="a"), count("t", 6, 15, topic_id="a"))
    topics = Topics(CLUSTER, topics.encode())
    assert apply(topics, count("t", 6, 20, topic_id="b"), count("t", 0, 30))[0] == [("t", 20), ("t", 30)]
    topics = Topics(CLUSTER, topics.encode())
    apply(topics, count("t", 6, 40, topic_id="c"))
    times = (5, 10, 15, 19, 20, 29, 30, 39, 40)
    assert [topics.topic_id("t", T0 + at) for at in times] == ["a", "a", "a", "a", "b", "b", None, None, "c"]
    renewed = [topics.renewed_at("t", T0 + at) for at in times]
    assert renewed == [None] * 4 + [T0 + 20] * 2 + [T0 + 30] * 2 + [T0 + 40]


def test_an_id_that_comes_later_is_that_of_all_earlier_time() -> None:
    topics = Topics(CLUSTER, b"")
    apply(topics, count("t", 4, 10), count("t", 4, 20, topic_id="a"), count("t", 4, 30))
    assert [topics.topic_id("t", T0 + at) for at in (10, 20, 30)] == ["a", "a", "a"]
    assert topics.renewed_at("t", T0 + 30) is None
    apply(topics, count("t", 0, 40), count("t", 4, 50), count("t", 4, 60, topic_id="b"))
    assert [topics.topic_id("t", T0 + at) for at in (39, 40, 50, 60)] == ["a", None, "b", "b"]
    assert topics.renewed_at("t", T0 + 60) == T0 + 50


def test_the_newest_of_many_lives_of_a_topic_are_remembered() -> None:
    topics = Topics(CLUSTER, b"")
    for number in range(MAX_LIVES + 5):
        apply(topics, count("t", 4, number, topic_id=f"id{number}"))
        topics = Topics(CLUSTER, topics.encode())
    assert topics.topic_id("t", T0) == "id5"
    assert topics.topic_id("t", T0 + MAX_LIVES + 4) == f"id{MAX_LIVES + 4}"


def test_metadata_of_any_topic_shows_as_of_each_batch() -> None:
    topics = Topics(CLUSTER, b"", batch=1)
    assert not topics.has_any(1, T0 + 99)
    apply(topics, count("t", 2, 20))
    assert [topics.has_any(1, T0 + at) for at in (19, 20)] == [False, True]
    data, changes = topics.encode(), topics.encode_changes(0)
    later = Topics(CLUSTER, data, changes, batch=2)
    apply(later, count("u", 1, 40))
    assert later.has_any(2, T0)  # what was there before a batch is older than all that it applies
    assert [later.has_any(1, T0 + at) for at in (19, 20)] == [False, True]
    assert not later.has_any(0, T0 + 99)
    last = Topics(CLUSTER, later.encode(), later.encode_changes(1), batch=3)
    assert [last.has_any(1, T0 + at) for at in (19, 20)] == [False, True]
    assert last.has_any(2, T0)
    assert TopicsAtBatch(last, 1).has_any(T0 + 20)
