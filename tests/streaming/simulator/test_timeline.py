"""Simulated time: the order of actions and of deliveries."""

from __future__ import annotations

from streaming.simulator.timeline import ACTION, EXPIRY, HEARTBEAT, Delivery, Post, Timeline
from udfs.model.events import Clock


def test_with_the_same_time_actions_run_before_heartbeats_and_expiries_last() -> None:
    timeline, ran = Timeline(0), []
    for phase in (EXPIRY, HEARTBEAT, ACTION):
        timeline.at(5, lambda phase=phase: ran.append(phase), phase)
    timeline.run_until(5)
    assert ran == [ACTION, HEARTBEAT, EXPIRY]


def test_actions_run_in_the_order_of_their_times_then_of_their_registration() -> None:
    timeline, ran = Timeline(0), []
    for name, at in (("c", 7), ("a", 5), ("b", 5), ("late", 9)):
        timeline.at(at, lambda name=name: ran.append((name, timeline.now)))
    timeline.run_until(8)
    assert (ran, timeline.now) == ([("a", 5), ("b", 5), ("c", 7)], 8)
    timeline.at(1, lambda: ran.append(("past", timeline.now)))
    timeline.run_until(8)
    assert ran[-1] == ("past", 8)


def test_deliveries_come_in_the_order_of_their_delivery_and_none_before_its_time() -> None:
    post = Post()
    for at in (30, 10, 20, 10):
        post.send(Delivery(at, Clock(schema_version=1, event_time=len(post._queue), system="kafka", cluster="c")))
    assert [(delivery.deliver_at, delivery.event.event_time) for delivery in post.until(20)] == [
        (10, 1),
        (10, 3),
        (20, 2),
    ]
    assert [delivery.deliver_at for delivery in post.until(29)] == []
    assert [delivery.deliver_at for delivery in post.until(None)] == [30]
