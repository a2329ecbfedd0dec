"""Reports of topics: growth and shrinkage at once; a topic that only seems to be deleted is not reported."""

from __future__ import annotations

from streaming.collectors.rocketmq.remoting.messages import StaticMapping, TopicRoute
from tests.streaming.collectors.rocketmq.surveys import (
    OPTIONS,
    Rounds,
    broker,
    config,
    connections,
    info,
    route,
    snapshots,
)
from udfs.model.events import MAX_QUEUE_COUNT, AnyEvent, TopicQueues

A5 = broker("a", topics=config("t", 5))
AWAY = broker("a", problem="no connection")


def queues(events: list[AnyEvent]) -> list[dict[str | None, int] | int | None]:
    """Return the content of each event: so many queues on which broker, or how many."""
    emitted: list[dict[str | None, int] | int | None] = []
    for event in events:
        assert isinstance(event, TopicQueues)
        if event.queues is None:
            emitted.append(event.queue_count)
            continue
        counts: dict[str | None, int] = {}
        for queue in event.queues:
            assert queue.queue_id == counts.get(queue.broker, 0)
            counts[queue.broker] = counts.get(queue.broker, 0) + 1
        emitted.append(counts)
    return emitted


def test_a_topic_is_reported_when_it_is_new_when_it_grows_and_when_it_shrinks() -> None:
    rounds = Rounds()
    assert queues(rounds.take(brokers=[A5], topics={"t": route("t", {"a": 5})})) == [{"a": 5}]
    assert rounds.take(brokers=[A5], topics={"t": route("t", {"a": 5})}) == []
    assert queues(rounds.take(brokers=[A5], topics={"t": route("t", {"a": 7})})) == [{"a": 7}]
    assert queues(rounds.take(brokers=[A5], topics={"t": route("t", {"a": 2})})) == [{"a": 2}]


def test_a_topic_on_one_more_broker_has_grown() -> None:
    rounds = Rounds()
    rounds.take(brokers=[A5], topics={"t": route("t", {"a": 5})})
    assert queues(rounds.take(brokers=[A5, broker("b")], topics={"t": route("t", {"a": 5, "b": 4})})) == [
        {"a": 5, "b": 4}
    ]


def test_queues_without_read_permission_are_not_shared() -> None:
    rounds = Rounds()
    assert rounds.take(brokers=[A5], topics={"t": route("t", {"a": 5}, perm=2)}) == []
    rounds.take(brokers=[A5], topics={"t": route("t", {"a": 5})})
    write_only = broker("a", topics=config("t", 5, perm=2))
    assert queues(rounds.take(brokers=[write_only], topics={"t": route("t", {"a": 5}, perm=2)})) == [0]
    assert rounds.take(brokers=[write_only], topics={"t": route("t", {"a": 5}, perm=2)}) == []


def test_a_name_server_that_knows_no_routes_yet_deletes_nothing() -> None:
    rounds = Rounds()
    rounds.take(brokers=[A5], topics={"t": route("t", {"a": 5})})
    for _ in range(10):
        assert rounds.take(brokers=[A5], topics={"t": None}) == []


def test_a_topic_that_its_brokers_do_not_have_any_more_is_deleted_when_two_polls_agree() -> None:
    rounds = Rounds()
    rounds.take(brokers=[A5], topics={"t": route("t", {"a": 5})})
    assert rounds.take(brokers=[broker("a")], topics={"t": None}) == []
    assert queues(rounds.take(brokers=[broker("a")], topics={"t": None})) == [0]
    assert rounds.state.topics == {}


def test_queues_of_an_absent_broker_are_held_while_consumers_may_not_have_noticed() -> None:
    rounds = Rounds()
    both = route("t", {"a": 5, "b": 5})
    valid = broker("b", topics=config("t", 5))
    rounds.take(brokers=[A5, valid], topics={"t": both})
    emitted = [
        queues(rounds.take(brokers=[AWAY, valid], topics={"t": route("t", {"b": 5})}))
        for _ in range(OPTIONS.route_grace_ms // 5_000 + 1)
    ]
    assert emitted == [[]] * (len(emitted) - 1) + [[{"b": 5}]]


def test_a_topic_keeps_its_queues_while_all_its_brokers_are_away_as_consumers_do() -> None:
    rounds = Rounds()
    other = broker("b")
    rounds.take(brokers=[A5, other], topics={"t": route("t", {"a": 5})})
    for _ in range(20):
        assert rounds.take(brokers=[AWAY, other], topics={"t": None}) == []


def test_a_static_topic_has_the_broker_names_of_consumers_and_is_observed_in_its_group() -> None:
    mapped = TopicRoute(
        topic="t",
        brokers=(),
        queues=route("t", {"a": 5}).queues,
        mappings={"a": StaticMapping(total_queues=3, scope="__global__")},
    )
    rounds = Rounds()
    events = rounds.take({"g": {"a": connections(["c1"])}}, brokers=[A5], topics={"t": mapped}, infos={"c1": info()})
    assert queues([event for event in events if isinstance(event, TopicQueues)]) == [{"__syslo__global__": 3}]
    (snapshot,) = snapshots(events)
    assert [(observation.kind, observation.detail) for observation in snapshot.observations or ()] == [
        ("static_topic", "t")
    ]


def test_a_topic_is_reported_before_the_group_that_reads_it_and_the_group_waits_for_it() -> None:
    rounds = Rounds()
    lists = {"g": {"a": connections(["c1"])}}
    assert rounds.take(lists, brokers=[A5], infos={"c1": info()}, unseen_topics=["t"]) == []
    events = rounds.take(lists, brokers=[A5], topics={"t": route("t", {"a": 5})})
    (snapshot,) = snapshots(events)
    assert isinstance(events[0], TopicQueues)
    assert events[0].event_time < snapshot.event_time


def test_a_count_beyond_what_an_event_may_carry_is_cut() -> None:
    events = Rounds().take(brokers=[A5], topics={"t": route("t", {"a": 2**31 - 1})})
    assert queues(events) == [{"a": MAX_QUEUE_COUNT}]


def test_a_negative_count_is_none() -> None:
    assert Rounds().take(brokers=[A5], topics={"t": route("t", {"a": -3})}) == []
