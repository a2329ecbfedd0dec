"""What rounds tell of groups beside their members: how they share, what members hold, offsets, and what is wrong."""

from __future__ import annotations

from streaming.collectors.rocketmq.remoting.messages import MessageRequestMode
from tests.streaming.collectors.rocketmq.surveys import (
    START_MS,
    Rounds,
    broker,
    connections,
    info,
    observed,
    offsets,
    route,
    snapshots,
)
from udfs.model.events import AnyEvent, AssignmentReported, GroupSettings, Observation, Progress

A, B = broker("a"), broker("b")
ONE = {"g": {"a": connections(["c1"])}}
TWO = {"g": {"a": connections(["c1", "c2"])}}


def reports(events: list[AnyEvent]) -> list[AssignmentReported]:
    return [event for event in events if isinstance(event, AssignmentReported)]


def settings(events: list[AnyEvent]) -> list[GroupSettings]:
    return [event for event in events if isinstance(event, GroupSettings)]


def details(events: list[AnyEvent], kind: str) -> list[str | None]:
    (snapshot,) = snapshots(events)
    return [one.detail for one in snapshot.observations or () if one.kind == kind]


def lags(events: list[AnyEvent]) -> dict[int, tuple[int | None, int | None, bool]]:
    """Return what is told of offsets, by queue."""
    queues = [queue for event in events if isinstance(event, Progress) for queue in event.queues]
    return {one.queue_id: (one.offset, one.end_offset, one.moved) for one in queues}


# ---- what members hold


def test_what_a_member_holds_is_told_when_it_changes_and_not_when_a_pull_moves() -> None:
    rounds = Rounds()
    (report,) = reports(rounds.take(ONE, infos={"c1": info(("t", "a", 0), ("t", "a", 1))}))
    assert [(queue.topic, queue.broker, queue.queue_id) for queue in report.queues] == [("t", "a", 0), ("t", "a", 1)]
    assert report.queues[0].last_pull_at == START_MS
    assert report.queues[0].locked is None
    assert report.host == "c1:1"
    for number in range(1, 4):
        later = info(("t", "a", 0), ("t", "a", 1), pulled_ms=START_MS + number)
        assert rounds.take(ONE, infos={"c1": later}) == []
    (report,) = reports(rounds.take(ONE, infos={"c1": info(("t", "a", 1))}))
    assert len(report.queues) == 1


def test_the_first_pull_of_a_queue_that_was_taken_over_is_told_once() -> None:
    rounds = Rounds()
    rounds.take(ONE, infos={"c1": info(("t", "a", 0))})
    two = (("t", "a", 0), ("t", "a", 1))
    assert len(reports(rounds.take(ONE, infos={"c1": info(*two, pulled_ms=START_MS + 10)}))) == 1
    assert reports(rounds.take(ONE, infos={"c1": info(*two, pulled_ms=START_MS + 10)})) == []
    (report,) = reports(rounds.take(ONE, infos={"c1": info(*two, pulled_ms=START_MS + 400)}))
    assert {queue.last_pull_at for queue in report.queues} == {START_MS + 400}
    assert reports(rounds.take(ONE, infos={"c1": info(*two, pulled_ms=START_MS + 900)})) == []


def test_a_newcomers_first_pull_is_told_too_and_that_of_a_group_seen_for_the_first_time_is_not() -> None:
    rounds = Rounds()
    rounds.take(ONE, infos={"c1": info(("t", "a", 0))})
    assert reports(rounds.take(ONE, infos={"c1": info(("t", "a", 0), pulled_ms=START_MS + 1)})) == []
    rounds.take(TWO, infos={"c2": info(("t", "a", 1))})
    assert len(reports(rounds.take(TWO, infos={"c2": info(("t", "a", 1), pulled_ms=START_MS + 1)}))) == 1


def test_a_lock_is_told_of_members_that_consume_in_order() -> None:
    rounds = Rounds()
    rounds.take(ONE, infos={"c1": info(("t", "a", 0), PROP_CONSUMEORDERLY="true", locked=False)})
    locked = info(("t", "a", 0), PROP_CONSUMEORDERLY="true", locked=True)
    (report,) = reports(rounds.take(ONE, infos={"c1": locked}))
    assert report.queues[0].locked is True


def test_times_that_are_none_and_queues_that_are_given_up_or_pseudo_are_left_out() -> None:
    rounds = Rounds()
    (report,) = reports(rounds.take(ONE, infos={"c1": info(("t", "a", 0), ("t", "a", -1), pulled_ms=0)}))
    assert [(queue.queue_id, queue.last_pull_at) for queue in report.queues] == [(0, None)]


def test_of_two_with_one_id_one_is_heard_and_told_without_its_address() -> None:
    rounds = Rounds()
    twice = {"g": {"a": connections([("c1", "x:1"), ("c1", "y:1")])}}
    (report,) = reports(rounds.take(twice, infos={"c1": info(("t", "a", 0))}))
    assert report.host is None


# ---- how queues are shared


def test_another_strategy_of_a_member_is_told() -> None:
    rounds = Rounds()
    rounds.take(ONE, infos={"c1": info()})
    (snapshot,) = snapshots(rounds.take(ONE, infos={"c1": info(strategy="com.example.Mine@1")}))
    assert snapshot.members[0].strategies == ("com.example.Mine",)


def test_broadcasting_by_the_members_own_word_or_else_the_groups_table() -> None:
    said = Rounds().take(ONE, infos={"c1": info(messageModel="BROADCASTING")})
    table = {"g": {"a": connections(["c1"], message_model="BROADCASTING")}}
    by_table = Rounds().take(table, infos={"c1": "unable"})
    assert [settings(events)[0].mode for events in (said, by_table)] == ["broadcasting", "broadcasting"]


def test_a_table_that_says_another_model_than_all_members_changes_nothing() -> None:
    rounds = Rounds()
    rounds.take(ONE, infos={"c1": info()})
    assert rounds.take({"g": {"a": connections(["c1"], message_model="BROADCASTING")}}) == []


def test_members_of_different_models_change_nothing_and_are_told_to_flap() -> None:
    rounds = Rounds()
    rounds.take(TWO, infos={"c1": info(), "c2": info()})
    events = rounds.take(TWO, infos={"c2": info(messageModel="BROADCASTING")})
    assert settings(events) == []
    assert details(events, "subscriptions_flap") == ["message models: BROADCASTING, CLUSTERING"]


def test_pop_is_message_mode_where_members_leave_the_dealing_to_the_broker() -> None:
    popping = broker("a", modes=(MessageRequestMode("t", "g", "POP", 3),))
    by_itself = Rounds().take(ONE, brokers=[popping], infos={"c1": info(clientRebalance="true")})
    by_broker = Rounds().take(ONE, brokers=[popping], infos={"c1": info(clientRebalance="false")})
    assert [settings(events)[0].mode for events in (by_itself, by_broker)] == ["clustering", "message"]
    assert settings(by_broker)[0].strategy_settings == {"share_number": 3}
    assert reports(by_broker) == []


def test_a_brokers_default_mode_shows_in_what_it_deals_and_stands_until_it_deals_otherwise() -> None:
    rounds = Rounds()
    pulls = info(("t", "a", 0), clientRebalance="false")
    (told,) = settings(rounds.take(ONE, infos={"c1": pulls}, dealt={"t": "POP"}))
    assert told.mode == "message"
    assert rounds.take(ONE) == []
    events = rounds.take(ONE, infos={"c1": pulls}, dealt={"t": "PULL"})
    assert [told.mode for told in settings(events)] == ["clustering"]
    assert [len(report.queues) for report in reports(events)] == [1]


def test_what_was_held_is_given_up_when_messages_are_shared() -> None:
    rounds = Rounds()
    pulls = info(("t", "a", 0), clientRebalance="false")
    rounds.take(ONE, infos={"c1": pulls})
    popping = broker("a", modes=(MessageRequestMode("t", "g", "POP", 0),))
    (report,) = reports(rounds.take(ONE, brokers=[popping], infos={"c1": pulls}))
    assert report.queues == ()


# ---- offsets


def test_offsets_are_told_when_they_move_and_the_first_look_is_where_they_start() -> None:
    rounds = Rounds()
    rounds.take(ONE, infos={"c1": info()}, offsets=offsets(q0=5, q1=7))
    assert rounds.take(ONE, offsets=offsets(q0=5, q1=7)) == []
    (progress,) = rounds.take(ONE, offsets=offsets(q0=5, q1=(8, 100), q2=-1))
    assert isinstance(progress, Progress)
    assert [(one.queue_id, one.offset, one.end_offset, one.moved) for one in progress.queues] == [(1, 8, 100, True)]
    (progress,) = rounds.take(ONE, offsets=offsets(q0=5, q1=(8, 100), q3=1, q4=0))
    assert isinstance(progress, Progress)
    assert [(one.queue_id, one.offset) for one in progress.queues] == [(3, 1)]  # the first commit ever
    rounds.restart()
    assert rounds.take(ONE, offsets=offsets(q0=5, q1=9)) == []


def test_a_queue_is_told_when_another_number_waits_there_though_nobody_commits() -> None:
    rounds = Rounds()
    told = [
        lags(rounds.take(ONE, infos={"c1": info()}, offsets=offsets(q0=(5, 9), q1=7, q2=(-1, 4)))),
        lags(rounds.take(ONE, offsets=offsets(q0=(5, 9), q1=7))),
        lags(rounds.take(ONE, offsets=offsets(q0=(5, 12), q1=(7, 8)))),
        lags(rounds.take({"g": {"a": None}}, offsets=offsets(q0=(5, 13), q1=(7, 8)))),
        lags(rounds.take({"g": {"a": None}}, offsets=offsets(q0=(6, 14), q1=(7, 8), q3=(0, 2)))),
    ]
    rounds.restart()
    told.append(lags(rounds.take({"g": {"a": None}}, offsets=offsets(q0=(6, 14), q1=8))))
    assert told == [
        {0: (5, 9, False)},
        {},
        {0: (5, 12, False), 1: (7, 8, False)},
        {0: (5, 13, False)},
        {0: (6, 14, True), 3: (0, 2, False)},  # as much waits, and somebody came further
        {0: (6, 14, False)},
    ]


def test_messages_that_come_while_nobody_is_connected_show_nobody_unseen() -> None:
    rounds = Rounds()
    heard = [rounds.take({"g": {"a": None}}, offsets=offsets(q0=(5, number))) for number in range(5, 11)]
    assert [observed(one) for events in heard for one in snapshots(events)] == []
    assert [lags(events) for events in heard] == [{}, *({0: (5, number, False)} for number in range(6, 11))]


def test_offsets_that_move_while_nobody_is_connected_show_members_that_are_unseen() -> None:
    rounds = Rounds()
    nobody = {"g": {"a": None}}
    heard = [rounds.take(nobody, offsets=offsets(q0=number)) for number in range(4)]
    shown = [observed(one) for events in heard for one in snapshots(events)]
    assert shown == [["members_unseen"]]
    still = [observed(one) for _ in range(4) for one in snapshots(rounds.take(nobody, offsets=offsets(q0=3)))]
    assert still == [[]]


def test_what_the_last_member_committed_as_it_went_shows_nobody_unseen() -> None:
    rounds = Rounds()
    rounds.take(ONE, infos={"c1": info()}, offsets=offsets(q0=1))
    heard = [rounds.take({"g": {"a": None}}, offsets=offsets(q0=2)) for _ in range(5)]
    assert [observed(one) for events in heard for one in snapshots(events)] == [[]]


# ---- what is wrong


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


def test_a_broker_without_queues_of_the_group_may_list_nobody() -> None:
    lists = {"g": {"a": connections(["c1"]), "b": None}}
    for counts, kinds in (({"a": 2}, []), ({"a": 2, "b": 2}, ["brokers_disagree"])):
        rounds = Rounds()
        topics = {"t": route("t", counts)}
        rounds.take(lists, brokers=[A, B], infos={"c1": info()}, topics=topics)
        rounds.take(lists, brokers=[A, B])
        assert [one.kind for one in rounds.known.groups["g"].observations] == kinds


def test_a_table_that_comes_back_flaps_until_it_has_rested_and_is_no_change_of_members() -> None:
    rounds = Rounds()
    tables = [{"g": {"a": connections(["c1", "c2"], {topic: "*"})}} for topic in ("t", "u")]
    rounds.take(tables[0], infos={"c1": info(topics=["t"]), "c2": info(topics=["u"])})
    heard = [event for number in range(1, 5) for event in rounds.take(tables[number % 2], later_ms=30_000)]
    assert [observed(event) for event in snapshots(heard)] == [["subscriptions_flap"]]
    assert [member.subscriptions for member in snapshots(heard)[0].members] == [("t",), ("u",)]
    heard = [event for _ in range(10) for event in rounds.take(tables[0], later_ms=30_000)]
    assert [observed(event) for event in snapshots(heard)] == [[]]
    assert rounds.take(tables[1]) == []  # once is a change


def test_members_that_cannot_be_asked_do_not_follow_a_table_that_flaps_and_follow_one_at_rest() -> None:
    rounds = Rounds()
    tables = [{"g": {"a": connections(["c1", "c2"], {topic: "*"})}} for topic in ("t", "u")]
    rounds.take(tables[0], infos={"c1": "unable", "c2": "unable"})
    heard = [event for number in range(1, 8) for event in rounds.take(tables[number % 2], later_ms=30_000)]
    assert {member.subscriptions for one in snapshots(heard) for member in one.members} == {("t",)}
    heard = [event for _ in range(6) for event in rounds.take(tables[1], later_ms=30_000)]
    assert {member.subscriptions for member in snapshots(heard)[-1].members} == {("u",)}


def test_a_table_that_changes_once_does_not_flap() -> None:
    rounds = Rounds()
    rounds.take({"g": {"a": connections(["c1"], {"t": "*"})}}, infos={"c1": info()})
    heard = [rounds.take({"g": {"a": connections(["c1"], {"t": "A || B"})}}) for _ in range(3)]
    assert heard == [[], [], []]


def test_consumers_that_pop_and_cannot_be_asked_are_a_proxys() -> None:
    lists = {"g": {"a": connections(["c1"], consume_type="CONSUME_POP")}}
    events = Rounds().take(lists, infos={"c1": "unable"})
    assert [told.mode for told in settings(events)] == ["message"]
    assert len(details(events, "members_unseen")) == 1


def test_a_group_that_is_not_polled_in_time_again_and_again_says_so() -> None:
    rounds = Rounds()
    lists = {"g": {"a": connections(["c1"])}}
    rounds.take(lists, brokers=[A, B], infos={"c1": info()})
    heard = [rounds.take(lists, brokers=[A, B], unpolled=["b"]) for _ in range(4)]
    assert [[observed(one) for one in snapshots(events)] for events in heard] == [[], [], [["not_polled"]], []]


def test_a_member_that_hangs_is_said_to_tell_nothing_and_words_stay_while_it_does() -> None:
    rounds = Rounds()
    rounds.take(TWO, infos={"c1": info(), "c2": info()})
    heard = [snapshots(rounds.take(TWO, infos={"c2": "silent"})) for _ in range(4)]
    assert [len(one) for one in heard] == [0, 1, 0, 0]
    assert heard[1][0].observations == (
        Observation(kind="running_info_missing", detail="c2: no answer, though connected"),
    )
    (snapshot,) = snapshots(rounds.take(TWO, infos={"c2": info()}))
    assert snapshot.observations == ()


def test_what_is_wrong_is_still_wrong_for_the_next_process() -> None:
    rounds = Rounds()
    rounds.take(TWO, infos={"c1": info(), "c2": info()})
    for _ in range(2):
        rounds.take(TWO, infos={"c2": "silent"})
    rounds.restart()
    assert rounds.take(TWO) == []
