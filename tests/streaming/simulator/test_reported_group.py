"""Groups whose coordinator reports every generation."""

from __future__ import annotations

from streaming.simulator import Fleet
from streaming.simulator.timeline import Delivery


def test_each_new_generation_of_a_coordinator_is_one_rebalance(life: tuple[Fleet, list[Delivery]]) -> None:
    fleet, deliveries = life
    reported = [one for one in fleet.truth if one.generation_source == "reported"]
    shown = {
        (one.event.cluster, one.event.group, one.event.generation, one.event.event_time)
        for one in deliveries
        if one.event.__class__.__name__ == "GroupSnapshot" and one.event.generation
    }
    expected = {(one.cluster, one.group_id, one.generation, one.event_time) for one in reported}
    assert len(expected) == len(reported) > 20
    assert expected <= shown
