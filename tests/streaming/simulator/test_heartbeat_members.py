"""Members that live by their own heartbeats: when they are members, and until when."""

from __future__ import annotations

import random

import pytest

from streaming.simulator import Fleet
from streaming.simulator.heartbeat_members import HeartbeatMembers, default_session_timeout_ms
from streaming.simulator.timeline import Delivery
from tests.streaming.simulator.lives import START_MS, OneCluster, counted, departures_reported


def test_a_session_ends_a_timeout_after_its_last_heartbeat(life: tuple[Fleet, list[Delivery]]) -> None:
    fleet, deliveries = life
    signs: dict[tuple[str, str, str], list[tuple[int, int | None]]] = {}
    timeouts: dict[tuple[str, str, str], int] = {}
    for delivery in deliveries:
        event = delivery.event
        if event.__class__.__name__ in ("Heartbeat", "MemberJoined"):
            key = (event.cluster, event.group, event.member_id)
            signs.setdefault(key, []).append(event.event_time)
            if event.session_timeout_ms is not None:
                timeouts[key] = event.session_timeout_ms
    checked = 0
    polled = departures_reported(deliveries, "expired")
    for rebalance, cause in counted(fleet, "session_expired"):
        key = (rebalance.cluster, rebalance.group_id, cause.member_id or "")
        if (*key, rebalance.event_time) in polled:
            continue
        last = max(time for time in signs[key] if time <= rebalance.event_time)
        assert last + timeouts.get(key, default_session_timeout_ms(rebalance.system)) == rebalance.event_time
        checked += 1
    assert checked > 5


def test_a_join_is_reported_at_its_own_time(life: tuple[Fleet, list[Delivery]]) -> None:
    fleet, deliveries = life
    reported = set()
    for delivery in deliveries:
        if delivery.event.__class__.__name__ in ("Heartbeat", "MemberJoined"):
            reported.add(
                (delivery.event.cluster, delivery.event.group, delivery.event.member_id, delivery.event.event_time)
            )
        if delivery.event.__class__.__name__ == "GroupSnapshot":
            reported |= {
                (delivery.event.cluster, delivery.event.group, member.member_id, delivery.event.event_time)
                for member in delivery.event.members
            }
    joins = [
        (rebalance.cluster, rebalance.group_id, cause.member_id, rebalance.event_time)
        for rebalance, cause in counted(fleet, "member_joined")
    ]
    assert len(joins) > 100
    assert set(joins) <= reported


@pytest.fixture
def members(alone: OneCluster) -> HeartbeatMembers:
    group = HeartbeatMembers(alone.cluster, "g", ["t"], random.Random(3), size=2, timeout_ms=6_000)
    alone.cluster.groups.append(group)  # type: ignore[arg-type]
    return group


def test_a_member_that_crashes_expires_a_timeout_after_its_last_heartbeat(
    alone: OneCluster, members: HeartbeatMembers
) -> None:
    member = members.new_member()
    members.join(member)
    alone.live(10_000)
    assert member.present
    members.crash(member)
    last = member.heartbeat_at - START_MS
    alone.live(20_000)
    alone.truth.reported("c", alone.timeline.now)
    assert alone.causes() == [(0, ["group_created", "member_joined"]), (last + 6_000, ["session_expired"])]
    assert not member.present


def test_a_member_that_leaves_sends_no_heartbeat_any_more(alone: OneCluster, members: HeartbeatMembers) -> None:
    member = members.new_member()
    members.join(member)
    alone.live(10_000)
    members.leave(member)
    assert [type(delivery.event).__name__ for delivery in alone.live(30_000)][-1] == "MemberLeft"
    assert alone.causes() == [(0, ["group_created", "member_joined"]), (10_000, ["member_left"])]


def test_heartbeats_of_a_silent_source_are_not_reported_and_its_members_expire(
    alone: OneCluster, members: HeartbeatMembers
) -> None:
    member = members.new_member()
    members.join(member)
    alone.live(10_000)
    last = member.heartbeat_at - START_MS
    alone.silence(30_000)
    during = [delivery.event.event_time for delivery in alone.live(29_000)]
    assert all(time <= START_MS + 10_000 for time in during)
    alone.live(20_000)
    assert next((at, kinds) for at, kinds in alone.causes() if at) == (last + 6_000, ["session_expired"])
    assert alone.causes()[-1][1] == ["member_joined"]
    assert member.present


@pytest.mark.parametrize(("system", "describes"), [("kafka", False), ("rocketmq", True), ("metaq", False)])
def test_ids_and_heartbeats_are_those_of_the_system(system: str, describes: bool) -> None:
    place = OneCluster(system)  # type: ignore[arg-type]
    group = HeartbeatMembers(place.cluster, "g", ["t"], random.Random(3), size=2, timeout_ms=None)
    member = group.new_member()
    group.join(member)
    place.live(20_000)
    beats = [delivery.event for delivery in place.live(60_000) if type(delivery.event).__name__ == "Heartbeat"]
    assert {event.subscriptions is not None for event in beats} == {describes}
    assert member.timeout_ms == default_session_timeout_ms(system)
    assert ("@" in member.member_id, member.member_id.startswith("g_")) == (system == "rocketmq", system == "metaq")
