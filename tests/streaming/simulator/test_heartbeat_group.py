"""Groups whose members send heartbeats: their departures are causes."""

from __future__ import annotations

from streaming.simulator import Fleet
from streaming.simulator.timeline import Delivery
from tests.streaming.simulator.lives import departures_reported


def test_every_reported_leave_of_a_member_is_a_cause_and_no_other(life: tuple[Fleet, list[Delivery]]) -> None:
    fleet, deliveries = life
    reported = {
        (delivery.event.cluster, delivery.event.group, delivery.event.member_id, delivery.event.event_time)
        for delivery in deliveries
        if delivery.event.__class__.__name__ == "MemberLeft"
    } | departures_reported(deliveries, "left")
    expected = {
        (rebalance.cluster, rebalance.group_id, cause.member_id, rebalance.event_time)
        for rebalance in fleet.truth
        for cause in rebalance.causes
        if cause.kind == "member_left" and rebalance.generation_source == "counted"
    }
    assert reported == expected
