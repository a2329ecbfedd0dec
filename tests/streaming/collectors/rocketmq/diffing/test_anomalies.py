"""Problems that brokers show and that have no event of their own."""

from __future__ import annotations

from tests.streaming.collectors.rocketmq.surveys import (
    ONE,
    TWO,
    A,
    B,
    Rounds,
    connections,
    details,
    info,
    lags,
    observed,
    offsets,
    route,
    settings,
    snapshots,
)
from udfs.model.events import Observation


def test_messages_that_arrive_while_no_member_is_connected_prove_no_unseen_member() -> None:
    rounds = Rounds()
    emitted = [rounds.take({"g": {"a": None}}, offsets=offsets(q0=(5, number))) for number in range(5, 11)]
    assert [observed(snapshot) for events in emitted for snapshot in snapshots(events)] == []
    assert [lags(events) for events in emitted] == [{0: (5, number, False)} for number in range(5, 11)]


def test_offsets_that_move_while_no_member_is_connected_prove_unseen_members() -> None:
    rounds = Rounds()
    unanswered = {"g": {"a": None}}
    emitted = [rounds.take(unanswered, offsets=offsets(q0=number)) for number in range(4)]
    shown = [observed(snapshot) for events in emitted for snapshot in snapshots(events)]
    assert shown == [["members_unseen"]]
    still = [
        observed(snapshot) for _ in range(4) for snapshot in snapshots(rounds.take(unanswered, offsets=offsets(q0=3)))
    ]
    assert still == [[]]


def test_the_last_commits_of_a_departed_member_prove_no_unseen_member() -> None:
    rounds = Rounds()
    rounds.take(ONE, infos={"c1": info()}, offsets=offsets(q0=1))
    emitted = [rounds.take({"g": {"a": None}}, offsets=offsets(q0=2)) for _ in range(5)]
    assert [observed(snapshot) for events in emitted for snapshot in snapshots(events)] == [[]]


def test_brokers_that_list_different_members_for_more_than_a_round_disagree() -> None:
    rounds = Rounds()
    lists = {"g": {"a": connections(["c1", "c2"]), "b": connections(["c1"])}}
    (snapshot,) = snapshots(rounds.take(lists, brokers=[A, B], infos={"c1": info(), "c2": info()}))
    assert observed(snapshot) == []
    events = rounds.take(lists, brokers=[A, B])
    assert details(events, "brokers_disagree") == ["b lists 1 of 2 members: not c2"]
    assert rounds.take(lists, brokers=[A, B]) == []
    same = {"g": {"a": connections(["c1", "c2"]), "b": connections(["c1", "c2"])}}
    (snapshot,) = snapshots(rounds.take(same, brokers=[A, B]))
    assert snapshot.observations == ()


def test_a_broker_without_queues_of_the_group_may_list_no_member() -> None:
    lists = {"g": {"a": connections(["c1"]), "b": None}}
    for counts, kinds in (({"a": 2}, []), ({"a": 2, "b": 2}, ["brokers_disagree"])):
        rounds = Rounds()
        topics = {"t": route("t", counts)}
        rounds.take(lists, brokers=[A, B], infos={"c1": info()}, topics=topics)
        rounds.take(lists, brokers=[A, B])
        assert [observation.kind for observation in rounds.state.groups["g"].observations] == kinds


def test_a_table_that_comes_back_flaps_until_it_has_rested_and_is_no_change_of_members() -> None:
    rounds = Rounds()
    tables = [{"g": {"a": connections(["c1", "c2"], {topic: "*"})}} for topic in ("t", "u")]
    rounds.take(tables[0], infos={"c1": info(topics=["t"]), "c2": info(topics=["u"])})
    emitted = [event for number in range(1, 5) for event in rounds.take(tables[number % 2], later_ms=30_000)]
    assert [observed(event) for event in snapshots(emitted)] == [["subscriptions_flap"]]
    assert [member.subscriptions for member in snapshots(emitted)[0].members] == [("t",), ("u",)]
    emitted = [event for _ in range(10) for event in rounds.take(tables[0], later_ms=30_000)]
    assert [observed(event) for event in snapshots(emitted)] == [[]]
    assert rounds.take(tables[1]) == []  # once is a change


def test_members_that_cannot_be_queried_follow_a_table_at_rest_and_none_that_flaps() -> None:
    rounds = Rounds()
    tables = [{"g": {"a": connections(["c1", "c2"], {topic: "*"})}} for topic in ("t", "u")]
    rounds.take(tables[0], infos={"c1": "unable", "c2": "unable"})
    emitted = [event for number in range(1, 8) for event in rounds.take(tables[number % 2], later_ms=30_000)]
    assert {member.subscriptions for snapshot in snapshots(emitted) for member in snapshot.members} == {("t",)}
    emitted = [event for _ in range(6) for event in rounds.take(tables[1], later_ms=30_000)]
    assert {member.subscriptions for member in snapshots(emitted)[-1].members} == {("u",)}


def test_a_table_that_changes_once_does_not_flap() -> None:
    rounds = Rounds()
    rounds.take({"g": {"a": connections(["c1"], {"t": "*"})}}, infos={"c1": info()})
    emitted = [rounds.take({"g": {"a": connections(["c1"], {"t": "A || B"})}}) for _ in range(3)]
    assert emitted == [[], [], []]


def test_consumers_that_pop_and_cannot_be_queried_are_clients_of_a_proxy() -> None:
    lists = {"g": {"a": connections(["c1"], consume_type="CONSUME_POP")}}
    events = Rounds().take(lists, infos={"c1": "unable"})
    assert [reported.mode for reported in settings(events)] == ["message"]
    assert len(details(events, "members_unseen")) == 1


def test_a_group_that_is_repeatedly_not_polled_in_time_is_observed() -> None:
    rounds = Rounds()
    lists = {"g": {"a": connections(["c1"])}}
    rounds.take(lists, brokers=[A, B], infos={"c1": info()})
    emitted = [rounds.take(lists, brokers=[A, B], unpolled=["b"]) for _ in range(4)]
    assert [[observed(snapshot) for snapshot in snapshots(events)] for events in emitted] == [
        [],
        [],
        [["not_polled"]],
        [],
    ]


def test_a_member_that_hangs_is_observed_with_one_detail_while_it_does() -> None:
    rounds = Rounds()
    rounds.take(TWO, infos={"c1": info(), "c2": info()})
    emitted = [snapshots(rounds.take(TWO, infos={"c2": "silent"})) for _ in range(4)]
    assert [len(events) for events in emitted] == [0, 1, 0, 0]
    assert emitted[1][0].observations == (
        Observation(kind="running_info_missing", detail="c2: no answer, though connected", members=("c2",)),
    )
    (snapshot,) = snapshots(rounds.take(TWO, infos={"c2": info()}))
    assert snapshot.observations == ()


def test_an_observation_is_current_also_for_the_next_process() -> None:
    rounds = Rounds()
    rounds.take(TWO, infos={"c1": info(), "c2": info()})
    for _ in range(2):
        rounds.take(TWO, infos={"c2": "silent"})
    rounds.restart()
    assert rounds.take(TWO) == []
