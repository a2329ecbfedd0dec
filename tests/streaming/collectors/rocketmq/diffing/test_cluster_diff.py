"""One round after another over a cluster: brokers come and go, and nothing is reported that did not happen."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.collectors.rocketmq.diffing.cluster_diff import is_news, missing_brokers
from streaming.collectors.rocketmq.remoting.messages import ConsumerConnections, RunningInfo
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
    snapshots,
)
from udfs.model.events import AssignmentReported, GroupDeleted, GroupSnapshot

BROKERS = ("a", "b")


IDS = ("c1", "c2", "c3")


listings = st.one_of(
    st.none(),
    st.lists(st.tuples(st.sampled_from(IDS), st.sampled_from(["h:1", "h:2", "h:3", ""])), max_size=5, unique=True).map(
        connections
    ),
)


answers = st.one_of(
    st.sampled_from(["silent", "offline", "unable"]),
    st.lists(st.tuples(st.just("t"), st.sampled_from(BROKERS), st.integers(-1, 2)), unique=True).map(
        lambda queues: info(*queues)
    ),
)


hostile_rounds = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from(BROKERS), listings),
        st.dictionaries(st.sampled_from(BROKERS), st.sampled_from(["away", "restarted", "unsteady"])),
        st.dictionaries(st.sampled_from(IDS), answers, max_size=3),
        st.booleans(),
        st.integers(0, 40_000),
    ),
    max_size=12,
)


def brokers_of(states: dict[str, str], boots: Counter[str]):
    """Return the brokers, restarted as often as their states demand."""
    for name in BROKERS:
        state = states.get(name)
        if state == "restarted":
            boots[name] += 1
        yield broker(
            name, problem="away" if state == "away" else None, boot_ms=1 + boots[name], is_steady=state != "unsteady"
        )


@given(hostile_rounds)
@settings(deadline=None)
def test_a_listed_member_is_always_reported_and_a_repeated_report_has_a_reason(drawn) -> None:
    rounds = Rounds()
    boots: Counter[str] = Counter()
    last: GroupSnapshot | None = None
    answered: dict[str, list[list[tuple[str, str, int]]]] = {}
    for lists, states, infos, restarts, later_ms in drawn:
        polled = {name: listed for name, listed in lists.items() if states.get(name) != "away"}
        events = rounds.take({"g": polled}, brokers=list(brokers_of(states, boots)), infos=infos, later_ms=later_ms + 1)
        for client_id, answer in infos.items():
            if isinstance(answer, RunningInfo):  # all of its queues, except those of pop consumption
                queues = [
                    (queue.topic, queue.broker_name, queue.queue_id) for queue in answer.queues if queue.queue_id >= 0
                ]
                answered.setdefault(client_id, []).append(sorted(queues))
        for snapshot in snapshots(events):
            content = (snapshot.members, snapshot.observations)
            assert last is None or content != (last.members, last.observations), "reported again though nothing changed"
            # A client that is listed anywhere is a member, as often as the broker that lists it most often does.
            reported = Counter(member.member_id for member in snapshot.members)
            for listed in polled.values():
                assert (
                    not Counter(connection.client_id for connection in listed.connections if listed) - reported
                    if listed
                    else True
                )
            # A departed member is not there any more.
            departed = {(departure.member_id, departure.host) for departure in snapshot.departures or ()}
            assert not departed & {(member.member_id, member.host) for member in snapshot.members}
            last = snapshot
        for report in events:
            if isinstance(report, AssignmentReported):
                assert last is not None
                assert report.member_id in {member.member_id for member in last.members}
                assert [(queue.topic, queue.broker, queue.queue_id) for queue in report.queues] in answered[
                    report.member_id
                ]
        if restarts:
            rounds.restart()


part_lists = st.frozensets(st.sampled_from(IDS))


@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.sampled_from(BROKERS), st.sampled_from(["away", "restarted", "unsteady"])),
            part_lists,
            st.booleans(),
        ),
        max_size=15,
    )
)
@settings(deadline=None)
def test_while_all_members_live_no_outage_or_start_of_a_broker_reports_a_departure(outages) -> None:
    """A broker that runs lists all; one that has just started those with a heartbeat since; while it starts, any."""
    rounds = Rounds(OPTIONS)
    boots: Counter[str] = Counter()
    rounds.take(
        {"g": dict.fromkeys(BROKERS, connections(IDS))},
        brokers=[broker(name) for name in BROKERS],
        infos=infos_of_all(),
    )
    grace_until = dict.fromkeys(BROKERS, 0)
    emitted: dict[str, set[str]] = {}
    for states, part, restarts in outages:
        now_ms = rounds.now_ms + 5_000
        lists: dict[str, ConsumerConnections | None] = {}
        for name in BROKERS:
            state = states.get(name)
            if state == "restarted":
                grace_until[name] = now_ms + OPTIONS.boot_grace_ms
                emitted[name] = set()
            if state == "away":
                continue
            listed = part
            if state != "unsteady":
                if now_ms >= grace_until[name]:
                    listed = frozenset(IDS)
                else:
                    emitted[name] |= part
                    listed = frozenset(emitted[name])
            lists[name] = connections(sorted(listed)) if listed else None
        events = rounds.take({"g": lists}, brokers=list(brokers_of(states, boots)))
        for snapshot in snapshots(events):
            assert [member.member_id for member in snapshot.members] == list(IDS)
            assert not snapshot.departures
        if restarts:
            rounds.restart()


def infos_of_all() -> dict[str, RunningInfo | str]:
    """Return each member's own report."""
    return dict.fromkeys(IDS, info())


def test_nothing_new_reports_nothing_but_the_clock() -> None:
    rounds = first_round("c1", "c2")
    for _ in range(3):
        assert rounds.take(both("c1", "c2"), brokers=[A, B]) == []


def test_without_any_answer_nothing_is_reported_not_even_the_time() -> None:
    rounds = first_round("c1")
    unreachable = [broker("a", problem="x"), broker("b", problem="x")]
    assert rounds.take({}, brokers=unreachable) == []
    assert rounds.state.clock_ms < rounds.now_ms
    assert rounds.take(both("c1"), brokers=[A, B]) == []


def test_a_broker_unlisted_and_long_away_is_forgotten_with_the_members_that_only_it_listed() -> None:
    rounds = Rounds()
    lists = {"g": {"a": connections(["c1"]), "b": connections(["c2"])}}
    rounds.take(lists, brokers=[A, B], infos={"c1": info(), "c2": info()})
    unlisted = broker("b", problem="x", is_listed=False)
    rounds.take({"g": {"a": connections(["c1"])}}, brokers=[A, unlisted])
    assert "b" in rounds.state.brokers
    later_ms = OPTIONS.forget_broker_ms
    (snapshot,) = snapshots(rounds.take({"g": {"a": connections(["c1"])}}, brokers=[A, unlisted], later_ms=later_ms))
    assert ids(snapshot) == ["c1"]
    assert "b" not in rounds.state.brokers


def test_a_group_that_no_broker_has_any_more_is_deleted_when_two_rounds_agree() -> None:
    rounds = first_round("c1")
    empty = {"g": {"a": None, "b": None}}
    rounds.take(empty, brokers=[A, B])
    without = [broker("a", groups=frozenset()), broker("b", groups=frozenset())]
    assert rounds.take(empty, brokers=without) == []
    (deleted,) = rounds.take(empty, brokers=without)
    assert isinstance(deleted, GroupDeleted)
    assert rounds.state.groups == {}


def test_a_group_with_settings_and_without_members_is_not_deleted() -> None:
    rounds = first_round("c1")
    events = [event for _ in range(4) for event in rounds.take({"g": {"a": None, "b": None}}, brokers=[A, B])]
    assert [ids(event) for event in events] == [[]]


def test_another_process_continues_and_reports_nothing_that_did_not_happen() -> None:
    rounds = first_round("c1", "c2")
    rounds.restart()
    assert rounds.take(both("c1", "c2"), brokers=[A, B], later_ms=3_600_000) == []
    rounds.restart()
    (snapshot,) = snapshots(rounds.take(both("c2"), brokers=[A, B]))
    assert ids(snapshot) == ["c2"]


@pytest.mark.parametrize(("later_ms", "is_missing"), [(29_999, False), (30_000, True)])
def test_a_broker_is_missing_once_consumers_may_have_noticed(later_ms: int, is_missing: bool) -> None:
    rounds = Rounds()
    rounds.take(brokers=[A, B])
    rounds.take(brokers=[A, broker("b", problem="away")])
    assert rounds.state.brokers["a"].away_since_ms is None
    missing = missing_brokers(rounds.state.brokers, rounds.now_ms + later_ms, rounds.options)
    assert missing == (frozenset("b") if is_missing else frozenset())


def test_time_alone_is_no_news_and_an_unavailable_broker_is() -> None:
    rounds = Rounds()
    empty = rounds.state
    rounds.take({"g": {"a": connections(["c1"])}}, brokers=[A, B], infos={"c1": info()})
    first = rounds.state
    assert is_news(empty, first)
    rounds.take({"g": {"a": connections(["c1"])}}, brokers=[A, B], infos={"c1": info()})
    assert rounds.state.clock_ms > first.clock_ms
    assert not is_news(first, rounds.state)
    rounds.take({"g": {"a": connections(["c1"])}}, brokers=[A, broker("b", problem="away")], infos={"c1": info()})
    assert is_news(first, rounds.state)
