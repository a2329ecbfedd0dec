"""Reports of members: joins, departures and their causes, and members that are kept for lack of evidence."""

from __future__ import annotations

import pytest

from streaming.collectors.rocketmq.remoting.messages import RunningInfo
from tests.streaming.collectors.rocketmq.surveys import (
    OPTIONS,
    A,
    B,
    Rounds,
    both,
    broker,
    connections,
    first_round,
    ids,
    info,
    observed,
    snapshots,
)
from udfs.model.events import AssignmentReported, GroupSettings, GroupSnapshot

AWAY = broker("b", problem="no connection")


def test_the_first_round_reports_the_mode_of_the_group_and_then_its_members() -> None:
    events = Rounds().take({"g": {"a": connections(["c1", "c2"])}}, infos={"c1": info(), "c2": info()})
    settings, snapshot, *reports = events
    assert isinstance(settings, GroupSettings)
    assert settings.mode == "clustering"
    assert isinstance(snapshot, GroupSnapshot)
    assert settings.event_time == snapshot.event_time
    assert ids(snapshot) == ["c1", "c2"]
    assert snapshot.members[0].strategies == ("AVG",)
    assert snapshot.members[0].subscriptions == ("t",)
    assert snapshot.members[0].client_version == "V5_5_0"
    assert snapshot.members[0].host == "c1:1"
    assert snapshot.generation is None
    assert {type(report) for report in reports} == {AssignmentReported}


def test_a_departed_member_is_reported_and_nothing_decides_how_it_departed() -> None:
    rounds = first_round("c1", "c2")
    (snapshot,) = snapshots(rounds.take(both("c1"), brokers=[A, B]))
    assert ids(snapshot) == ["c1"]
    assert snapshot.departures is not None
    (departure,) = snapshot.departures
    assert (departure.member_id, departure.kind, departure.inferred) == ("c2", "gone", False)
    assert "killed" in (departure.evidence or "")


def test_a_member_that_hung_before_its_connection_closed_has_expired() -> None:
    rounds = first_round("c1", "c2")
    for _ in range(2):
        rounds.take(both("c1", "c2"), brokers=[A, B], infos={"c2": "silent"})
    (snapshot,) = snapshots(rounds.take(both("c1"), brokers=[A, B]))
    assert snapshot.departures is not None
    assert [(departure.member_id, departure.kind, departure.inferred) for departure in snapshot.departures] == [
        ("c2", "expired", True)
    ]


def test_a_second_silence_may_be_reported_in_the_round_of_the_departure() -> None:
    rounds = first_round("c1", "c2")
    # Its connection closes between two requests that it does not answer: no round before shows that it is stuck.
    rounds.take(both("c1", "c2"), brokers=[A, B], infos={"c2": "silent"})
    (snapshot,) = snapshots(rounds.take(both("c1"), brokers=[A, B], infos={"c2": "silent"}))
    assert snapshot.departures is not None
    assert [(departure.member_id, departure.kind, departure.inferred) for departure in snapshot.departures] == [
        ("c2", "expired", True)
    ]


@pytest.mark.parametrize(
    ("rounds_after", "kind"), [([], "gone"), ([None], "expired"), ([info()], "gone"), ([None, info()], "gone")]
)
def test_one_that_was_silent_once_expired_if_it_was_connected_and_silent_afterwards(
    rounds_after: list[RunningInfo | None], kind: str
) -> None:
    rounds = first_round("c1", "c2")
    rounds.take(both("c1", "c2"), brokers=[A, B], infos={"c2": "silent"})
    for answer in rounds_after:
        rounds.take(both("c1", "c2"), brokers=[A, B], infos={"c2": answer} if answer is not None else None)
    (snapshot,) = snapshots(rounds.take(both("c1"), brokers=[A, B]))
    assert snapshot.departures is not None
    (departure,) = snapshot.departures
    assert departure.kind == kind
    assert ("queried once" in (departure.evidence or "")) == (kind == "expired")


def test_one_that_was_silent_once_or_long_ago_or_answered_since_did_not_expire() -> None:
    for silences, answers, later_ms in ((1, False, 5_000), (2, True, 5_000), (2, False, 600_000)):
        rounds = first_round("c1", "c2")
        for _ in range(silences):
            rounds.take(both("c1", "c2"), brokers=[A, B], infos={"c2": "silent"})
        if answers:
            rounds.take(both("c1", "c2"), brokers=[A, B], infos={"c2": info()})
        (snapshot,) = snapshots(rounds.take(both("c1"), brokers=[A, B], later_ms=later_ms))
        assert snapshot.departures is not None
        assert [departure.kind for departure in snapshot.departures] == ["gone"], (silences, answers, later_ms)


def test_an_unavailable_broker_is_no_evidence_against_members_that_only_it_lists() -> None:
    rounds = Rounds()
    lists = {"g": {"a": connections(["c1"]), "b": connections(["c1", "c2"])}}
    rounds.take(lists, brokers=[A, B], infos={"c1": info(), "c2": info()})
    events = rounds.take({"g": {"a": connections(["c1"])}}, brokers=[A, AWAY])
    (snapshot,) = snapshots(events)
    assert ids(snapshot) == ["c1", "c2"]
    assert "not_polled" in observed(snapshot)
    assert len(rounds.state.groups["g"].members) == 2


def test_a_member_that_its_broker_no_longer_lists_has_departed_though_another_is_away() -> None:
    rounds = first_round("c1", "c2")
    (snapshot,) = snapshots(rounds.take({"g": {"a": connections(["c1"])}}, brokers=[A, AWAY]))
    assert ids(snapshot) == ["c1"]


def test_a_restarted_broker_lists_no_member_until_they_had_time_to_come_back() -> None:
    rounds = Rounds()
    rounds.take({"g": {"a": connections(["c1", "c2"])}}, infos={"c1": info(), "c2": info()})
    restarted = broker("a", boot_ms=2)
    emitted = []
    for _ in range(OPTIONS.boot_grace_ms // 5_000):
        emitted += snapshots(rounds.take({"g": {"a": None}}, brokers=[restarted]))
    assert emitted
    assert all(ids(snapshot) == ["c1", "c2"] for snapshot in emitted)
    assert not [departure for snapshot in emitted for departure in snapshot.departures or ()]
    (snapshot,) = snapshots(rounds.take({"g": {"a": connections(["c1"])}}, brokers=[restarted]))
    assert ids(snapshot) == ["c1"]
    assert snapshot.departures is not None
    assert "restarted" in (snapshot.departures[0].evidence or "")


def test_a_member_listed_again_since_its_broker_started_may_depart_at_once() -> None:
    rounds = Rounds()
    rounds.take({"g": {"a": connections(["c1", "c2"])}}, infos={"c1": info(), "c2": info()})
    restarted = broker("a", boot_ms=2)
    rounds.take({"g": {"a": connections(["c1"])}}, brokers=[restarted])
    (snapshot,) = snapshots(rounds.take({"g": {"a": None}}, brokers=[restarted]))
    assert ids(snapshot) == ["c2"]


def test_a_broker_that_was_restarted_within_a_round_is_no_evidence() -> None:
    rounds = Rounds()
    rounds.take({"g": {"a": connections(["c1"])}}, infos={"c1": info()})
    emitted = snapshots(rounds.take({"g": {"a": None}}, brokers=[broker("a", is_steady=False)]))
    assert all(ids(snapshot) == ["c1"] for snapshot in emitted)


def test_members_that_all_came_back_leave_no_trace_of_a_rebalance() -> None:
    rounds = Rounds()
    rounds.take({"g": {"a": connections(["c1", "c2"])}}, infos={"c1": info(), "c2": info()})
    restarted = broker("a", boot_ms=2)
    emitted = []
    for listed in ([], ["c2"], ["c1", "c2"], ["c1", "c2"]):
        emitted += snapshots(rounds.take({"g": {"a": connections(listed) if listed else None}}, brokers=[restarted]))
    assert all(ids(snapshot) == ["c1", "c2"] for snapshot in emitted)


def test_two_connections_with_one_id_are_two_members_distinguished_by_their_addresses() -> None:
    rounds = Rounds()
    twice = connections([("c1", "10.0.0.1:1"), ("c1", "10.0.0.2:1")])
    (snapshot,) = snapshots(rounds.take({"g": {"a": twice, "b": twice}}, brokers=[A, B], infos={"c1": info()}))
    assert ids(snapshot) == ["c1", "c1"]
    assert [member.host for member in snapshot.members] == ["10.0.0.1:1", "10.0.0.2:1"]
    assert "duplicate_unreachable" in observed(snapshot)
    once = connections([("c1", "10.0.0.2:1")])
    (snapshot,) = snapshots(rounds.take({"g": {"a": once, "b": once}}, brokers=[A, B]))
    assert [member.host for member in snapshot.members] == ["10.0.0.2:1"]
    assert snapshot.departures is not None
    assert [(departure.member_id, departure.host) for departure in snapshot.departures] == [("c1", "10.0.0.1:1")]


def test_one_id_at_the_same_address_twice_is_two_members_and_no_crash() -> None:
    rounds = first_round("c1")
    same = connections([("c1", "c1:1"), ("c1", "c1:1")])
    for _ in range(3):
        rounds.take({"g": {"a": same, "b": same}}, brokers=[A, B])
    assert len(rounds.state.groups["g"].members) == 2


def test_a_client_has_another_port_at_each_broker_and_is_one_member_that_keeps_its_address() -> None:
    rounds = Rounds()
    at_a, at_b = connections([("c1", "10.0.0.1:1")]), connections([("c1", "10.0.0.1:2")])
    (snapshot,) = snapshots(rounds.take({"g": {"a": at_a, "b": at_b}}, brokers=[A, B], infos={"c1": info()}))
    assert [member.host for member in snapshot.members] == ["10.0.0.1:1"]
    # An absent broker proves nothing against the address by which it listed the member.
    assert rounds.take({"g": {"b": at_b}}, brokers=[broker("a", problem="x"), B]) == []
    assert rounds.take({"g": {"a": at_a, "b": at_b}}, brokers=[A, B]) == []


def test_a_member_disconnected_from_one_broker_has_its_address_at_another() -> None:
    rounds = Rounds()
    at_a, at_b = connections([("c1", "10.0.0.1:1")]), connections([("c1", "10.0.0.1:2")])
    rounds.take({"g": {"a": at_a, "b": at_b}}, brokers=[A, B], infos={"c1": info()})
    (snapshot,) = snapshots(rounds.take({"g": {"a": None, "b": at_b}}, brokers=[A, B]))
    assert [member.host for member in snapshot.members] == ["10.0.0.1:2"]
    assert not snapshot.departures


def test_a_member_that_was_not_queried_yet_is_not_reported_without_its_strategy() -> None:
    rounds = Rounds()
    lists = {"g": {"a": connections(["c1", "c2"])}}
    assert rounds.take(lists, infos={"c1": info(("t", "a", 0))}) == []
    settings, snapshot, *reports = rounds.take(lists, infos={"c2": info(("t", "a", 1))})
    assert isinstance(settings, GroupSettings)
    assert ids(snapshot) == ["c1", "c2"]
    held = {
        report.member_id: [queue.queue_id for queue in report.queues]
        for report in reports
        if isinstance(report, AssignmentReported)
    }
    assert held == {"c1": [0], "c2": [1]}


def test_a_member_that_cannot_be_queried_has_the_topics_of_its_groups_table() -> None:
    rounds = Rounds()
    lists = {"g": {"a": connections(["c1"], {"t": "*", "u": "*"})}}
    (snapshot,) = snapshots(rounds.take(lists, infos={"c1": "unable"}))
    assert snapshot.members[0].subscriptions == ("t", "u")
    assert snapshot.members[0].strategies is None
    (snapshot,) = snapshots(rounds.take(lists, infos={"c1": "unable"}))
    assert observed(snapshot) == ["running_info_missing"]


def test_a_newcomer_in_a_reported_group_is_waited_for_and_not_for_ever() -> None:
    rounds = first_round("c1")
    emitted = [rounds.take(both("c1", "c2"), brokers=[A, B]) for _ in range(4)]
    assert emitted[0] == []
    assert [ids(snapshot) for snapshot in snapshots(event for events in emitted for event in events)] == [["c1", "c2"]]


def test_a_broker_restarted_while_it_was_not_polled_has_its_time_too() -> None:
    rounds = first_round("c1")
    rounds.restart()
    restarted = [broker("a", boot_ms=2), broker("b", boot_ms=2)]
    emitted = snapshots(rounds.take({"g": {"a": None, "b": None}}, brokers=restarted, later_ms=3_600_000))
    assert all(ids(snapshot) == ["c1"] for snapshot in emitted)
