"""Reports of groups beside their members: their mode, settings and offsets."""

from __future__ import annotations

from streaming.collectors.rocketmq.remoting.messages import MessageRequestMode
from tests.streaming.collectors.rocketmq.surveys import (
    ONE,
    TWO,
    Rounds,
    broker,
    connections,
    details,
    info,
    reports,
    settings,
    snapshots,
)

# ---- what members hold


# ---- how queues are shared


def test_another_strategy_of_a_member_is_reported() -> None:
    rounds = Rounds()
    rounds.take(ONE, infos={"c1": info()})
    (snapshot,) = snapshots(rounds.take(ONE, infos={"c1": info(strategy="com.example.Mine@1")}))
    assert snapshot.members[0].strategies == ("com.example.Mine",)


def test_broadcasting_by_the_members_own_report_or_else_the_groups_table() -> None:
    emitted = Rounds().take(ONE, infos={"c1": info(messageModel="BROADCASTING")})
    table = {"g": {"a": connections(["c1"], message_model="BROADCASTING")}}
    by_table = Rounds().take(table, infos={"c1": "unable"})
    assert [settings(events)[0].mode for events in (emitted, by_table)] == ["broadcasting", "broadcasting"]


def test_a_table_with_another_model_than_all_members_changes_nothing() -> None:
    rounds = Rounds()
    rounds.take(ONE, infos={"c1": info()})
    assert rounds.take({"g": {"a": connections(["c1"], message_model="BROADCASTING")}}) == []


def test_members_of_different_models_change_nothing_and_are_observed_to_flap() -> None:
    rounds = Rounds()
    rounds.take(TWO, infos={"c1": info(), "c2": info()})
    events = rounds.take(TWO, infos={"c2": info(messageModel="BROADCASTING")})
    assert settings(events) == []
    assert details(events, "subscriptions_flap") == ["message models: BROADCASTING, CLUSTERING"]


def test_pop_is_message_mode_where_members_leave_assigning_to_the_broker() -> None:
    popping = broker("a", modes=(MessageRequestMode("t", "g", "POP", 3),))
    by_itself = Rounds().take(ONE, brokers=[popping], infos={"c1": info(clientRebalance="true")})
    by_broker = Rounds().take(ONE, brokers=[popping], infos={"c1": info(clientRebalance="false")})
    assert [settings(events)[0].mode for events in (by_itself, by_broker)] == ["clustering", "message"]
    assert settings(by_broker)[0].strategy_settings == {"share_number": 3}
    assert reports(by_broker) == []


def test_a_brokers_default_mode_shows_in_its_assignments_and_is_current_until_they_change() -> None:
    rounds = Rounds()
    pulls = info(("t", "a", 0), clientRebalance="false")
    (reported,) = settings(rounds.take(ONE, infos={"c1": pulls}, topic_modes={"t": "POP"}))
    assert reported.mode == "message"
    assert rounds.take(ONE) == []
    events = rounds.take(ONE, infos={"c1": pulls}, topic_modes={"t": "PULL"})
    assert [reported.mode for reported in settings(events)] == ["clustering"]
    assert [len(report.queues) for report in reports(events)] == [1]


# ---- what is wrong
