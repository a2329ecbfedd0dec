"""Two reads of a topic: news is reported at once, and losses only after a while."""

from __future__ import annotations

from streaming.collectors.metaq.observed import (
    Folder,
    ZkShare,
    ZkTopic,
)
from streaming.collectors.metaq.read_context import ReadContext
from streaming.collectors.metaq.topic_diff import diff_topic
from streaming.collectors.metaq.zk_times import TransactionTimes

T0 = 1_772_334_720_000


def test_queues_missing_for_less_than_the_settle_time_are_not_reported() -> None:
    def context(at: int) -> ReadContext:
        return ReadContext("c", noticed=at, at=at, continuous=True, settle_ms=1_000, times=TransactionTimes())

    def topic_of(count: int | None, since: int) -> ZkTopic:
        return ZkTopic(Folder(), {} if count is None else {"0-m": ZkShare("0", count, since)})

    events, state = diff_topic("t", None, topic_of(5, T0 - 50), context(T0))
    assert [(event.event_time, len(event.queues or ())) for event in events] == [(T0, 5)]
    events, state = diff_topic("t", state, topic_of(None, 0), context(T0 + 100))
    assert events == []
    events, state = diff_topic("t", state, topic_of(7, T0 + 120), context(T0 + 130))
    assert [(event.event_time, len(event.queues or ())) for event in events] == [(T0 + 120, 7)]
    events, state = diff_topic("t", state, topic_of(None, 0), context(T0 + 5_000))
    events, state = diff_topic("t", state, topic_of(None, 0), context(T0 + 5_999))
    assert events == []
    events, state = diff_topic("t", state, topic_of(None, 0), context(T0 + 6_000))
    assert [(event.event_time, event.queue_count) for event in events] == [(T0 + 5_000, 0)]
    assert diff_topic("t", state, topic_of(None, 0), context(T0 + 9_000))[0] == []


def context(at: int) -> ReadContext:
    return ReadContext("c", noticed=at, at=at, continuous=True, settle_ms=1_000, times=TransactionTimes())


def topic(shares: dict[str, tuple[int, int]]) -> ZkTopic:
    found = {name: ZkShare(name.split("-")[0], count, since) for name, (count, since) in shares.items()}
    return ZkTopic(Folder(), found)


def test_a_topic_without_queues_is_reported_once_it_has_some() -> None:
    events, state = diff_topic("t", None, topic({}), context(T0))
    assert events == []
    (event,), state = diff_topic("t", state, topic({"0-m": (1, T0 + 3)}), context(T0 + 5))
    assert (event.event_time, state.queues) == (T0 + 3, (("0", 0),))


def test_a_slave_adds_no_queues_and_a_second_broker_does() -> None:
    _, state = diff_topic("t", None, topic({"0-m": (2, T0 - 9)}), context(T0))
    events, state = diff_topic("t", state, topic({"0-m": (2, T0 - 9), "0-s1": (2, T0 + 1)}), context(T0 + 2))
    assert events == []
    (event,), _ = diff_topic("t", state, topic({"0-m": (2, T0 - 9), "1-m": (1, T0 + 7)}), context(T0 + 8))
    assert [(queue.broker, queue.queue_id) for queue in event.queues or ()] == [("0", 0), ("0", 1), ("1", 0)]
    assert event.event_time == T0 + 7


def test_times_of_one_topic_never_go_back() -> None:
    _, state = diff_topic("t", None, topic({"0-m": (1, T0 + 100)}), context(T0 + 100))
    (event,), _ = diff_topic("t", state, topic({"0-m": (2, T0 + 50)}), context(T0 + 200))
    assert event.event_time == T0 + 101


def test_the_time_of_a_broker_ahead_is_not_used() -> None:
    _, state = diff_topic("t", None, topic({"0-m": (1, T0)}), context(T0))
    (event,), _ = diff_topic("t", state, topic({"0-m": (2, T0 + 900_000)}), context(T0 + 10))
    assert event.event_time == T0 + 10
