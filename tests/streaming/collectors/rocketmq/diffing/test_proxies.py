"""Members that only proxies list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from streaming.collectors.rocketmq.remoting.messages import ConsumerConnections
from tests.cluster_options import rocketmq_options
from tests.streaming.collectors.rocketmq.surveys import (
    Rounds,
    connections,
    details,
    ids,
    info,
    observed,
    offsets,
    reports,
    route,
    settings,
    snapshots,
)
from udfs.model.events import AnyEvent, GroupSnapshot

P, Q = "10.0.0.1:8080", "10.0.0.2:8080"
NOBODY = {"g": {"a": None}}
TOPICS = {"t": route("t", {"a": 2})}
AWAY = "connection refused"
Proxies = Mapping[str, ConsumerConnections | str | None]


def followed(*proxies: str) -> Rounds:
    return Rounds(rocketmq_options("127.0.0.1:9876", cluster="test", proxies=proxies))


def take(rounds: Rounds, *proxies: ConsumerConnections | str | None, later_ms: int = 5_000) -> list[AnyEvent]:
    return rounds.take(NOBODY, proxies=dict(zip((P, Q), proxies, strict=False)), topics=TOPICS, later_ms=later_ms)


def shown(events: Sequence[AnyEvent]) -> list[list[str]]:
    """Return the members of each snapshot."""
    return [ids(snapshot) for snapshot in snapshots(list(events))]


def departed(events: Sequence[AnyEvent]) -> list[tuple[str, str, str | None]]:
    return [
        (departure.member_id, departure.kind, departure.evidence)
        for event in events
        if isinstance(event, GroupSnapshot)
        for departure in event.departures or ()
    ]


def test_clients_of_a_proxy_are_members_at_once_and_share_the_messages() -> None:
    rounds = followed(P)
    events = take(rounds, connections([("c1", "10.1.0.1:40000"), ("c2", "10.1.0.2:40000")]))
    assert shown(events) == [["c1", "c2"]]
    assert [member.host for member in snapshots(events)[0].members] == ["10.1.0.1:40000", "10.1.0.2:40000"]
    assert {member.subscriptions for member in snapshots(events)[0].members} == {("t",)}
    assert {member.client_version for member in snapshots(events)[0].members} == {None}  # it is the proxy's own
    assert [(reported.mode, reported.strategy_settings) for reported in settings(events)] == [("message", None)]
    assert observed(snapshots(events)[0]) == []
    assert take(rounds, connections([("c1", "10.1.0.1:40000"), ("c2", "10.1.0.2:40000")])) == []


def test_a_client_that_two_proxies_list_is_one_member() -> None:
    rounds = followed(P, Q)
    assert shown(take(rounds, connections(["c1"]), connections(["c1", "c2"]))) == [["c1", "c2"]]
    # It has another connection, and the other proxy keeps the old one until it expires.
    both = connections([("c1", "c1:1"), ("c1", "c1:2"), "c2"])
    assert take(rounds, connections([("c1", "c1:2"), "c2"]), both) == []
    moved = connections([("c1", "c1:2"), "c2"])
    (snapshot,) = snapshots(take(rounds, moved, moved))
    assert [member.host for member in snapshot.members] == ["c1:2", "c2:1"]
    assert observed(snapshot) == []


@pytest.mark.parametrize(
    ("lists", "text"),
    [
        (
            [(None, None)],
            f"it is no longer listed by proxy {P}, {Q}: it was shut down, or it was killed or hung two minutes before",
        ),
        # Its own proxy drops it at once, and the other one when its copy expires.
        ([(None, True), (None, None)], f"it is no longer listed by proxy {Q}: "),
    ],
)
def test_a_client_departs_when_no_proxy_lists_it(lists: list[tuple[bool | None, bool | None]], text: str) -> None:
    rounds = followed(P, Q)
    both, without = connections(["c1", "c2"]), connections(["c2"])
    take(rounds, both, both)
    emitted = [take(rounds, *(both if is_listed else without for is_listed in answers)) for answers in lists]
    assert [departed(events) for events in emitted[:-1]] == [[]] * (len(lists) - 1)
    ((member, kind, evidence),) = departed(emitted[-1])
    assert (member, kind) == ("c1", "gone")
    assert (evidence or "").startswith(text)


def test_members_of_a_proxy_that_does_not_answer_are_unknown_and_not_gone() -> None:
    rounds = followed(P)
    take(rounds, connections(["c1", "c2"]))
    events = take(rounds, AWAY)
    assert shown(events) == [["c1", "c2"]]
    assert details(events, "not_polled") == [
        f"proxy {P} cannot list connections: it is unknown whether c1, c2 are connected"
    ]
    assert settings(events) == []
    rounds.restart()
    assert take(rounds, AWAY, later_ms=600_000) == []
    # It answers again, and its clients connect in the time that they have for it.
    assert take(rounds, None) == []
    events = take(rounds, connections(["c1"]))
    assert (shown(events), departed(events)) == ([["c1", "c2"]], [])
    assert details(events, "not_polled") == [
        f"proxy {P} cannot list connections: it is unknown whether c2 are connected"
    ]
    events = take(rounds, connections(["c1"]), later_ms=40_000)
    assert shown(events) == [["c1"]]
    assert departed(events) == [("c2", "gone", f"it did not connect again after proxy {P} had been away")]
    assert observed(snapshots(events)[0]) == []


def test_a_client_that_connected_after_the_proxy_came_back_and_left_is_gone_at_once() -> None:
    rounds = followed(P)
    take(rounds, connections(["c1"]))
    for answer in (AWAY, connections(["c1"])):
        take(rounds, answer)
    assert shown(take(rounds, connections(["c2"]))) == [["c2"]]


def test_one_proxy_away_leaves_what_the_other_one_lists() -> None:
    rounds = followed(P, Q)
    take(rounds, connections(["c1", "c2"]), connections(["c1", "c2"]))
    assert take(rounds, AWAY, connections(["c1", "c2"])) == []
    # The other one got the heartbeats of both, and no longer does.
    assert shown(take(rounds, AWAY, connections(["c2"]))) == [["c2"]]


def test_a_group_with_members_at_a_broker_and_at_a_proxy_has_both() -> None:
    rounds = followed(P)
    lists = {"g": {"a": connections(["direct"], {"t": "*", "%RETRY%g": "*"})}}
    events = rounds.take(lists, proxies={P: connections(["c1"])}, infos={"direct": info(("t", "a", 0))}, topics=TOPICS)
    assert shown(events) == [["c1", "direct"]]
    assert [reported.mode for reported in settings(events)] == ["message"]
    assert [(report.member_id, report.queues) for report in reports(events)] == []
    assert observed(snapshots(events)[0]) == []


def test_clients_of_the_remoting_protocol_behind_a_proxy_assign_queues_themselves() -> None:
    events = take(followed(P), connections(["c1"], {"t": "*", "%RETRY%g": "*"}))
    assert [member.subscriptions for member in snapshots(events)[0].members] == [("%RETRY%g", "t")]
    assert [reported.mode for reported in settings(events)] in ([], ["clustering"])
    assert observed(snapshots(events)[0]) == []


@pytest.mark.parametrize(
    ("proxies", "detail"),
    [
        ({}, "offsets move, and no broker lists a member; rocketmq.proxies names no proxy"),
        ({P: None}, "offsets move, and neither a broker nor a proxy of rocketmq.proxies lists a member"),
        (
            {P: AWAY},
            f"offsets move, and neither a broker nor a proxy of rocketmq.proxies lists a member; {P} does not answer",
        ),
    ],
)
def test_offsets_that_move_without_a_member_say_what_is_known_of_proxies(proxies: Proxies, detail: str) -> None:
    rounds = followed(*proxies)
    emitted = [rounds.take(NOBODY, proxies=proxies, offsets=offsets(q0=number)) for number in range(4)]
    found = [events for events in emitted if snapshots(events)]
    assert details(found[0], "members_unseen") == [detail]


def test_a_proxy_that_is_not_in_the_settings_any_more_takes_its_members_with_it() -> None:
    rounds = followed(P)
    take(rounds, connections(["c1"]))
    rounds.options = rocketmq_options("127.0.0.1:9876", cluster="test")
    assert departed(take(rounds)) == [("c1", "gone", f"{P} listed it and is not followed any more")]


def test_what_is_remembered_of_proxies_is_of_those_in_the_settings() -> None:
    rounds = followed(P)
    take(rounds, AWAY)
    assert rounds.state.proxies[P].away_since_ms == rounds.now_ms
    away_since_ms = rounds.now_ms
    take(rounds, AWAY)
    assert rounds.state.proxies[P].away_since_ms == away_since_ms
    take(rounds, connections(["c1"]))
    assert rounds.state.proxies[P].lists_all_at_ms == rounds.now_ms + rounds.options.boot_grace_ms
    rounds.options = rocketmq_options("127.0.0.1:9876", cluster="test")
    take(rounds)
    assert rounds.state.proxies == {}
