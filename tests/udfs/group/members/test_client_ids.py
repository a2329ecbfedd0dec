"""Which member a connection is."""

from __future__ import annotations

import pytest

from udfs.group.members.client_ids import (
    match_connections,
    match_departures,
    replaced,
    reporting_member,
    resolve_member_id,
)
from udfs.group.state.group import Group, Member
from udfs.model.events import Departure, GroupSnapshot, MemberInfo


def live(**members: str | None) -> Group:
    """Make a group of live connections: member id (``a__2`` for ``a#2``) -> address."""
    ids = {name.replace("__", "#"): host for name, host in members.items()}
    return Group(
        members={
            member_id: Member(member_id=member_id, name=member_id.split("#")[0], joined_at=0, host=host)
            for member_id, host in ids.items()
        }
    )


@pytest.mark.parametrize(
    ("group", "host", "member_id"),
    [
        (live(), "h1", "a"),
        (live(), None, "a"),
        (live(a="h1"), "h1", "a"),
        # An address that is not known on one of the two sides is no other connection.
        (live(a="h1"), None, "a"),
        (live(a=None), "h1", "a"),
        (live(a="h1"), "h2", "a#2"),
        (live(a="h1", a__2="h2"), "h2", "a#2"),
        (live(a="h1", a__2="h2"), "h3", "a#3"),
        # The lowest free number.
        (live(a="h1", a__3="h3"), "h2", "a#2"),
        (live(a__2="h2"), "h3", "a"),
        (live(a__2="h2"), "h2", "a#2"),
        (live(b="h2"), "h2", "a"),
    ],
)
def test_a_connection_of_another_address_is_another_member(group: Group, host: str | None, member_id: str) -> None:
    assert resolve_member_id(group, "a", host) == (member_id, "a")


def entries(*members: tuple[str, str | None]) -> list[MemberInfo]:
    return [MemberInfo(member_id=name, host=host) for name, host in members]


@pytest.mark.parametrize(
    ("group", "shown", "ids"),
    [
        (live(), [("b", "h1"), ("a", None)], ["b", "a"]),
        (live(a="h1"), [("a", "h9")], ["a"]),
        (live(), [("a", "h2"), ("a", "h1")], ["a#2", "a"]),
        (live(a="h1", a__2="h2"), [("a", "h2"), ("a", "h1")], ["a#2", "a"]),
        # The one that is left keeps its number.
        (live(a="h1", a__2="h2"), [("a", "h2")], ["a#2"]),
        # What is left goes by address to what is left of the same id, the lowest number first.
        (live(a="h1", a__2="h2"), [("a", "h4"), ("a", "h3")], ["a#2", "a"]),
        (live(a="h1", a__2="h2"), [("a", "h3"), ("a", "h1")], ["a#2", "a"]),
        (live(a="h1", a__2="h2"), [("a", "h2"), ("a", "h3"), ("a", "h4")], ["a#2", "a", "a#3"]),
        (live(a__10="h10", a__2="h2"), [("a", "h4"), ("a", "h3")], ["a#10", "a#2"]),
        (live(a="h1"), [("b", "h1"), ("b", "h2"), ("a", "h1")], ["b", "b#2", "a"]),
    ],
)
def test_entries_of_a_snapshot_are_the_members_of_their_id_and_address(
    group: Group, shown: list[tuple[str, str | None]], ids: list[str]
) -> None:
    infos = entries(*shown)
    assert list(match_connections(group, infos).items()) == list(zip(ids, infos, strict=True))


@pytest.mark.parametrize(
    ("group", "host", "member_id"),
    [
        (live(a="h1", a__2="h2"), None, "a"),
        (live(a="h1", a__2="h2"), "h2", "a#2"),
        (live(a="h1", a__2="h2"), "h3", None),
        # Clients reconnect: the only connection of an id is the one that reports.
        (live(a="h1"), "h2", "a"),
        (live(a__2="h2"), "h9", "a#2"),
        (live(b="h1"), "h1", None),
        (live(), None, None),
    ],
)
def test_a_report_is_of_the_connection_of_its_address(group: Group, host: str | None, member_id: str | None) -> None:
    found = reporting_member(group, "a", host)
    assert (found and found.member_id) == member_id


def test_a_report_may_name_the_numbered_id_itself() -> None:
    found = reporting_member(live(a="h1", a__2="h2"), "a#2", "h9")
    assert found is not None
    assert found.member_id == "a#2"


def snapshot(shown: list[tuple[str, str | None]], *departures: Departure) -> GroupSnapshot:
    return GroupSnapshot(
        schema_version=1,
        event_time=1,
        system="rocketmq",
        cluster="c",
        group="g",
        members=tuple(entries(*shown)),
        departures=departures or None,
    )


def test_a_member_with_a_departed_address_was_replaced_by_one_of_the_same_id() -> None:
    left = Departure(member_id="a", kind="left", host="h1")
    assert replaced(live(a="h1"), snapshot([("a", "h2")], left)) == {"a": left}
    # It is still shown; it is not shown at all; another address departed; no address is known.
    assert replaced(live(a="h1"), snapshot([("a", "h1"), ("a", "h2")], left)) == {}
    assert replaced(live(a="h1"), snapshot([("b", "h2")], left)) == {}
    assert replaced(live(a="h3"), snapshot([("a", "h2")], left)) == {}
    assert replaced(live(a="h1"), snapshot([("a", "h2")], Departure(member_id="a", kind="left"))) == {}
    assert replaced(live(a="h1"), snapshot([("a", "h2")])) == {}


@pytest.mark.parametrize(
    ("reports", "matched"),
    [
        ([("a", "h2")], ["a#2"]),
        ([("a", None)], ["a"]),
        ([("a", None), ("a", None)], ["a", "a#2"]),
        # An unknown address may mean only one connection, or none.
        ([("a", "h9")], []),
        ([("a", "h1"), ("a", "h9")], ["a", "a#2"]),
        ([("a#2", "h9")], ["a#2"]),
        ([("b", "h9")], ["b"]),
        ([("x", "h1")], []),
        # Two reports of one address are about one connection, not about the only other one.
        ([("a", "h1"), ("a", "h1")], ["a"]),
        ([("a", None), ("a", "h1")], ["a", "a#2"]),
    ],
)
def test_each_report_of_a_departure_is_of_one_connection(
    reports: list[tuple[str, str | None]], matched: list[str]
) -> None:
    reported = [Departure(member_id=name, kind="left", host=host) for name, host in reports]
    found = match_departures(list(live(a="h1", a__2="h2", b="h3").members.values()), reported)
    assert list(found) == matched
    assert len({id(departure) for departure in found.values()}) == len(found)
