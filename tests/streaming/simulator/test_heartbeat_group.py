"""What happens to groups whose members send heartbeats: departures are causes."""

from __future__ import annotations

from streaming.simulator import Fleet
from streaming.simulator.timeline import Delivery
from tests.streaming.simulator.lives import departures_reported


def test_every_reported_leave_of_a_member_is_a_cause_and_no_other(life: tuple[Fleet, list[Delivery]]) -> None:
    fleet, deliveries = life
    reported = {
        (one.event.cluster, one.event.group, one.event.member_id, one.event.event_time)
        for one in deliveries
        if one.event.__class__.__name__ == "MemberLeft"
    } | departures_reported(deliveries, "left")
    expected = {
        (one.cluster, one.group_id, cause.member_id, one.event_time)
        for one in fleet.truth
        for cause in one.causes
        if cause.kind == "member_left" and one.generation_source == "counted"
    }
    assert reported == expected
