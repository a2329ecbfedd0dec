"""What several departures say together. A session timeout is 6 s."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.udfs.group.group_script import Script
from udfs.model.events import MemberLeft
from udfs.model.journal import Trigger

# Hosts by member.
HOSTS = {"a": "h1", "b": "h1", "c": "h2", "d": "h3"}


def causes(
    departed: Mapping[str, tuple[int, str]],
    hosts: Mapping[str, str | None] = HOSTS,
    left: Mapping[str, str | None] | None = None,
    at: int = 30_000,
) -> list[Trigger]:
    """Return the causes of a generation that lacks members.

    Args:
        departed: When and how. left: Hosts of the members of that generation; None: all but those.
    """
    script = Script()
    script.queues(0, "t", 4)
    present = {name: host for name, host in hosts.items() if name not in departed} if left is None else left
    for member_id, (time, how) in departed.items():
        script.event(MemberLeft, time, member_id=member_id, how=how)
    for time, generation, members in ((1_000, 1, hosts), (at, 2, present)):
        described = {
            name: {"session_timeout_ms": 6_000, "client_id": f"client-{name}", **({"host": host} if host else {})}
            for name, host in members.items()
        }
        script.snapshot(time, generation, {name: ["t"] for name in members}, None, described, strategy="range")
    return script.run(at + 10_000).rebalances[-1].triggers


def lost(triggers: list[Trigger]) -> set[tuple[str | None, str | None]]:
    return {(trigger.member_id, trigger.host) for trigger in triggers if trigger.part_of == "host_lost"}


def test_all_members_of_a_host_that_expire_within_a_session_say_that_it_was_lost() -> None:
    found = causes({"a": (22_000, "expired"), "b": (24_500, "expired")})
    assert lost(found) == {("a", "h1"), ("b", "h1")}
    assert [trigger.detail for trigger in found] == [
        "all 2 members of host h1 (client-a and client-b) expired within 2.5 s while those of other hosts went on: the"
        " host was lost, or what ran them all"
    ] * 2
    (first, _) = causes({"a": (22_000, "expired"), "b": (22_010, "expired")})
    assert "expired together while" in (first.detail or "")


@pytest.mark.parametrize(
    ("what", "departed", "hosts", "left"),
    [
        ("one member alone on its host", {"c": (22_000, "expired")}, HOSTS, None),
        ("one of two stays", {"a": (22_000, "expired")}, HOSTS, None),
        ("a session timeout apart", {"a": (16_000, "expired"), "b": (22_000, "expired")}, HOSTS, None),
        ("one has left in order", {"a": (22_000, "left"), "b": (22_000, "expired")}, HOSTS, None),
        ("how one departed is not known", {"b": (22_000, "expired")}, HOSTS, {"c": "h2", "d": "h3"}),
        (
            "one of another host expires, too",
            {"a": (22_000, "expired"), "b": (22_000, "expired"), "c": (23_000, "expired")},
            HOSTS,
            None,
        ),
        (
            "nobody is left on another host",
            {"a": (22_000, "expired"), "b": (22_000, "expired")},
            {"a": "h1", "b": "h1"},
            None,
        ),
        (
            "a member of that host joins",
            {"a": (22_000, "expired"), "b": (22_000, "expired")},
            HOSTS,
            {"c": "h2", "d": "h3", "e": "h1"},
        ),
        (
            "others are on hosts that are not known",
            {"a": (22_000, "expired"), "b": (22_000, "expired")},
            {**HOSTS, "d": None},
            None,
        ),
        (
            "they are all new",
            {"a": (22_000, "expired"), "b": (22_000, "expired")},
            HOSTS,
            {"e": "h2", "f": "h3"},
        ),
    ],
)
def test_a_host_is_not_convicted_without_evidence_for_the_whole(
    what: str,
    departed: dict[str, tuple[int, str]],
    hosts: dict[str, str | None],
    left: dict[str, str | None] | None,
) -> None:
    assert lost(causes(departed, hosts, left)) == set(), what


def test_others_that_leave_in_order_meanwhile_take_nothing_away() -> None:
    found = causes({"a": (22_000, "expired"), "b": (22_000, "expired"), "c": (23_000, "left")})
    assert lost(found) == {("a", "h1"), ("b", "h1")}
    assert {trigger.member_id: trigger.host for trigger in found} == {"a": "h1", "b": "h1", "c": "h2"}


def test_members_of_a_host_that_expire_one_by_one_convict_it_with_the_last() -> None:
    script = Script("rocketmq")
    script.queues(0, "t", 4)
    for member_id, host in (("a", "10.0.0.1:5001"), ("b", "10.0.0.1:5002"), ("c", "10.0.0.2:5001")):
        script.join(1_000, member_id, host=host, session_timeout_ms=6_000)
    for time in range(2_000, 40_000, 1_000):
        script.beat(time, "c")
        if time < 10_000:
            script.beat(time, "a")
        if time < 12_000:
            script.beat(time + 100, "b")
    rows = script.run(40_000).rebalances
    assert [lost(row.triggers) for row in rows[-2:]] == [set(), {("b", "10.0.0.1")}]
    assert "all 2 members of host 10.0.0.1 (a and b) expired within 2.1 s" in (rows[-1].triggers[0].detail or "")


# ---- restarts


def restarts(steps: list[tuple[int, dict[str, str], tuple[str, str] | None]]) -> list[Trigger]:
    """Return all causes of generations, each with its time, the client of each member, and who departed how before."""
    script = Script()
    script.queues(0, "t", 4)
    for generation, (at, members, departed) in enumerate(steps, 1):
        if departed is not None:
            script.event(MemberLeft, at - 100, member_id=departed[0], how=departed[1])
        described = {member_id: {"client_id": client, "host": "h1"} for member_id, client in members.items()}
        script.snapshot(at, generation, {member_id: ["t"] for member_id in members}, None, described, strategy="range")
    rows = script.run(steps[-1][0] + 10_000).rebalances
    return [trigger for row in rows for trigger in row.triggers]


def rolling(triggers: list[Trigger]) -> list[str | None]:
    return [trigger.member_id for trigger in triggers if trigger.part_of == "rolling_restart"]


ALL = {"a1": "a", "b1": "b", "c1": "c"}


def test_clients_that_leave_and_come_back_one_after_the_other_are_restarted() -> None:
    found = restarts(
        [
            (1_000, ALL, None),
            (10_000, {"b1": "b", "c1": "c"}, ("a1", "left")),
            (13_000, {"a2": "a", "b1": "b", "c1": "c"}, None),
            (15_000, {"a2": "a", "b2": "b", "c1": "c"}, ("b1", "left")),
            (20_000, {"a2": "a", "b2": "b"}, ("c1", "left")),
            (22_000, {"a2": "a", "b2": "b", "c2": "c"}, None),
        ]
    )
    assert rolling(found) == ["b2", "c2"]
    details = {trigger.member_id: trigger.detail or "" for trigger in found if trigger.part_of}
    assert "a rolling restart: 2 clients left and came back one after the other within 5.1 s (a and b)" in details["b2"]
    assert details["c2"].endswith("3 clients left and came back one after the other within 12.1 s (a, b and c)")


@pytest.mark.parametrize(
    ("what", "steps"),
    [
        (
            "one client alone",
            [(1_000, ALL, None), (10_000, {"a2": "a", "b1": "b", "c1": "c"}, ("a1", "left"))],
        ),
        (
            "the first one expired",
            [
                (1_000, ALL, None),
                (10_000, {"a2": "a", "b1": "b", "c1": "c"}, ("a1", "expired")),
                (15_000, {"a2": "a", "b2": "b", "c1": "c"}, ("b1", "left")),
            ],
        ),
        (
            "both are away at one time",
            [
                (1_000, ALL, None),
                (10_000, {"b1": "b", "c1": "c"}, ("a1", "left")),
                (11_000, {"c1": "c"}, ("b1", "left")),
                (15_000, {"a2": "a", "c1": "c"}, None),
                (16_000, {"a2": "a", "b2": "b", "c1": "c"}, None),
            ],
        ),
        (
            "long after each other",
            [
                (1_000, ALL, None),
                (10_000, {"a2": "a", "b1": "b", "c1": "c"}, ("a1", "left")),
                (900_000, {"a2": "a", "b2": "b", "c1": "c"}, ("b1", "left")),
            ],
        ),
        (
            "nobody knows which of two it was",
            [
                (1_000, {"a1": "a", "b1": "a", "c1": "c"}, None),
                (10_000, {"a2": "a", "b1": "a", "c1": "c"}, ("a1", "left")),
                (15_000, {"a2": "a", "b2": "a", "c1": "c"}, ("b1", "left")),
            ],
        ),
    ],
)
def test_it_is_no_rolling_restart(what: str, steps: list[tuple[int, dict[str, str], tuple[str, str] | None]]) -> None:
    assert rolling(restarts(steps)) == [], what
