"""Groups whose coordinator reports every generation."""

from __future__ import annotations

from streaming.simulator import Fleet
from streaming.simulator.timeline import Delivery


def test_each_new_generation_of_a_coordinator_is_one_rebalance(life: tuple[Fleet, list[Delivery]]) -> None:
    fleet, deliveries = life
    reported = [rebalance for rebalance in fleet.truth if rebalance.generation_source == "reported"]
    shown = {
        (delivery.event.cluster, delivery.event.group, delivery.event.generation, delivery.event.event_time)
        for delivery in deliveries
        if delivery.event.__class__.__name__ == "GroupSnapshot" and delivery.event.generation
    }
    expected = {
        (rebalance.cluster, rebalance.group_id, rebalance.generation, rebalance.event_time) for rebalance in reported
    }
    assert len(expected) == len(reported) > 20
    assert expected <= shown
