"""One cluster and its source, which may be late, repeat itself, or be silent."""

from __future__ import annotations

from collections import Counter

from streaming.simulator import Fleet
from streaming.simulator.serializer import line
from streaming.simulator.timeline import Delivery
from tests.streaming.simulator.lives import START_MS, OneCluster, lived
from udfs.model.events import Clock, Heartbeat, TopicQueues


def test_without_disorder_everything_comes_soon_and_once() -> None:
    fleet, deliveries = lived(4, disorder=0.0)
    assert max(delivery.deliver_at - delivery.event.event_time for delivery in deliveries[:-3]) < 400
    plain = [line(Delivery(0, delivery.event)) for delivery in deliveries if not isinstance(delivery.event, Heartbeat)]
    with_id = [text for text in plain if b'"event_id"' in text]
    assert len(with_id) == len(set(with_id)) > 100
    assert all(rebalance.required and rebalance.late_until is None for rebalance in fleet.truth)


def test_a_silent_source_reports_nothing_of_its_silence(life: tuple[Fleet, list[Delivery]]) -> None:
    fleet, deliveries = life
    assert fleet.silences
    for silence in fleet.silences:
        times = {delivery.event.event_time for delivery in deliveries if delivery.event.cluster == silence.cluster}
        assert not [time for time in times if silence.silent_from < time < silence.silent_to]
        assert {silence.silent_from, silence.silent_to} <= times


def test_some_events_come_twice_and_some_come_late() -> None:
    _, deliveries = lived(0, speed=4.0)
    times_reported = Counter(
        line(Delivery(0, delivery.event)) for delivery in deliveries if not isinstance(delivery.event, Heartbeat)
    )
    assert max(times_reported.values()) > 1
    newest: dict[str, int] = {}
    behind = Counter()
    for delivery in deliveries:
        newest[delivery.event.cluster] = max(newest.get(delivery.event.cluster, 0), delivery.event.event_time)
        behind[(newest[delivery.event.cluster] - delivery.event.event_time) // 2_000] += 1
    assert behind[0] > 0.9 * len(deliveries)
    assert sum(behind.values()) > behind[0]


def test_clocks_come_every_five_seconds_and_none_while_the_source_is_out(alone: OneCluster) -> None:
    alone.cluster.start(late_topic=None)
    first = [
        delivery.event.event_time - START_MS for delivery in alone.live(11_000) if isinstance(delivery.event, Clock)
    ]
    assert first == [0, 5_000, 10_000]
    alone.silence(12_000)
    after = [
        delivery.event.event_time - START_MS for delivery in alone.live(20_000) if isinstance(delivery.event, Clock)
    ]
    # The first thing that it reports again is that it is back.
    assert after[0] == 23_000
    assert alone.truth.silences[0].silent_to == START_MS + 23_000


def test_a_topic_grows_at_once_and_its_source_reports_it_at_its_next_poll(alone: OneCluster) -> None:
    alone.cluster.start(late_topic=None)
    alone.live(1_000)
    topic = alone.cluster.topics["t"]
    assert alone.cluster.steady(["t"])
    alone.cluster.grow(topic, 6, poll_delay_ms=3_000)
    assert (topic.count, topic.reported, alone.cluster.steady(["t"])) == (6, 4, False)
    found = [delivery.event for delivery in alone.live(5_000) if isinstance(delivery.event, TopicQueues)]
    assert [(event.event_time - START_MS, event.queue_count) for event in found] == [(4_500, 6)]
    assert alone.cluster.steady(["t"])


def test_a_topic_of_several_brokers_names_each_queue() -> None:
    elsewhere = OneCluster("rocketmq")
    elsewhere.cluster.start(late_topic=None)
    (event,) = [delivery.event for delivery in elsewhere.live(1_000) if isinstance(delivery.event, TopicQueues)]
    assert [(queue.broker, queue.queue_id) for queue in event.queues or ()] == [
        (b, n) for b in ("b0", "b1") for n in range(4)
    ]
