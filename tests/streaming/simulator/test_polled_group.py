"""Groups that a collector polls whole: what happens between two polls is one snapshot."""

from __future__ import annotations

import random

import pytest

from streaming.simulator.polled_group import POLL_INTERVAL_MS, ForeignGroup, PolledGroup
from tests.streaming.simulator.lives import OneCluster
from udfs.model.events import GroupSnapshot


class Quiet(PolledGroup):
    """A group to which nothing happens except by the test."""

    def rest(self) -> None:
        pass


@pytest.fixture
def place() -> OneCluster:
    return OneCluster("rocketmq")


@pytest.fixture
def group(place: OneCluster) -> Quiet:
    made = Quiet(place.cluster, "g", ["t", "u"], random.Random(3), size=3)
    place.cluster.groups.append(made)  # type: ignore[arg-type]
    made.start()
    return made


def polls(place: OneCluster, span_ms: int = POLL_INTERVAL_MS + 400) -> list[GroupSnapshot]:
    return [delivery.event for delivery in place.live(span_ms) if isinstance(delivery.event, GroupSnapshot)]


def test_all_members_of_the_first_poll_joined_with_it(place: OneCluster, group: Quiet) -> None:
    first = polls(place)[0]
    assert sorted(member.member_id for member in first.members) == sorted(group.members)
    assert [kinds for _, kinds in place.causes()] == [["group_created", *["member_joined"] * 3]]


def test_a_departure_is_reported_as_far_as_the_source_observed_it(place: OneCluster, group: Quiet) -> None:
    polls(place)
    triggers = {"left": "member_left", "expired": "session_expired"}
    for _ in range(40):
        group._remove()
        before = dict(group.departures)
        (snapshot,) = polls(place, POLL_INTERVAL_MS)
        departures = {departure.member_id: departure.kind for departure in snapshot.departures or ()}
        assert departures == {member_id: member.kind for member_id, member in before.items()}
        expected = [triggers[kind] for kind in departures.values()] or ["member_gone"]
        assert place.causes()[-1][1] == expected
        group._add()
        polls(place, POLL_INTERVAL_MS)
        assert place.causes()[-1][1] == ["member_joined"]


def test_a_member_that_joins_and_departs_between_two_polls_was_never_observed(place: OneCluster, group: Quiet) -> None:
    polls(place)
    before = place.causes()
    group._add()
    group._depart(list(group.members)[-1])
    (snapshot,) = polls(place, POLL_INTERVAL_MS)
    assert len(snapshot.members) == 3
    assert snapshot.departures is None
    assert place.causes() == before


def test_another_subscription_is_a_cause_and_the_same_one_is_none(place: OneCluster, group: Quiet) -> None:
    polls(place)
    member_id = sorted(group.members)[0]
    host, topics = group.members[member_id]
    group.members[member_id] = (host, topics[:1])
    polls(place, POLL_INTERVAL_MS)
    assert place.causes()[-1][1] == ["subscription_changed"]
    before = place.causes()
    polls(place, POLL_INTERVAL_MS)
    assert place.causes() == before


def test_a_group_of_another_kind_is_listed_and_never_has_a_rebalance(place: OneCluster) -> None:
    foreign = ForeignGroup(place.cluster, "f", ["t"], random.Random(3))
    foreign.start()
    listed = [poll for poll in polls(place, 600_000) if poll.group == "f"]
    assert len(listed) > 10
    assert {poll.state for poll in listed} == {"not_followed"}
    assert [poll.generation for poll in listed] == list(range(1, len(listed) + 1))
    assert place.causes() == []
