"""Members as plain values: as few as possible, and back."""

from __future__ import annotations

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from udfs.group.format.member_format import Kinds, KindsRead, pack_member, time_before, unpack_members
from udfs.group.format.owners_format import SharedValues
from udfs.group.state.group import Member
from udfs.model.events import QueueRef

BASE = 10_000
TEXTS = st.none() | st.sampled_from(["", "h", "m-1", "m", "é"])
MEMBERS = st.builds(
    Member,
    member_id=st.sampled_from(["m-1", "m-1#2", "n"]),
    name=st.sampled_from(["m-1", "n"]),
    joined_at=st.integers(0, 12_000),
    by_heartbeats=st.booleans(),
    client_id=TEXTS,
    host=TEXTS,
    instance_id=TEXTS,
    rack=TEXTS,
    client_library=TEXTS,
    client_version=TEXTS,
    language=TEXTS,
    ordered=st.none() | st.booleans(),
    subscriptions=st.none() | st.sampled_from([(), ("t",), ("t", "u")]),
    strategies=st.none() | st.sampled_from([(), ("range",)]),
    strategy_settings=st.none() | st.sampled_from([{"a": 1}, {"a": [1, None]}]),
    session_timeout_ms=st.none() | st.integers(0, 3),
    rebalance_timeout_ms=st.none() | st.integers(0, 3),
    owned=st.none() | st.sampled_from([(), (QueueRef("t", 0), QueueRef("t", 1, "b"))]),
    owned_generation=st.none() | st.integers(-1, 3),
    holds_since=st.integers(0, 12_000),
    timeout_since=st.none() | st.integers(0, 12_000),
    reported_at=st.none() | st.integers(0, 12_000),
    field_times=st.dictionaries(st.sampled_from(["host", "rack", "owned", "ordered"]), st.integers(0, 12_000)),
)


@given(st.lists(MEMBERS, max_size=5))
def test_members_come_back_as_they_were(members: list[Member]) -> None:
    table = SharedValues()
    kinds = Kinds(table)
    packed = [pack_member(member, kinds, BASE) for member in members]
    assert list(unpack_members(packed, KindsRead(table.values), BASE)) == members


def member(number: int) -> Member:
    member_id = f"client-{number}-uuid"
    return Member(
        member_id=member_id,
        name=member_id,
        joined_at=9_000,
        client_id=f"client-{number}",
        host="h",
        subscriptions=("t",),
        holds_since=9_000,
        field_times=dict.fromkeys(("client_id", "host", "subscriptions"), 9_000),
    )


def test_a_member_that_is_like_others_is_its_id_two_times_and_two_numbers() -> None:
    kinds = Kinds(SharedValues())
    # The client id is written as how much of the member id it is.
    assert pack_member(member(1), kinds, BASE) == ["client-1-uuid", 1_000, 1, 0, 8, "h"]
    assert pack_member(member(2), kinds, BASE) == ["client-2-uuid", 1_000, 1, 0, 8, "h"]
    assert len(kinds.table.values) == 1


@pytest.mark.parametrize("field", ["subscriptions", "strategies", "strategy_settings", "session_timeout_ms", "ordered"])
def test_members_that_differ_have_different_kinds(field: str) -> None:
    values = {"subscriptions": (), "strategies": (), "strategy_settings": {"a": 1}, "session_timeout_ms": 1}
    other = msgspec.structs.replace(member(2), **{field: values.get(field, True)})
    kinds = Kinds(SharedValues())
    assert (kinds.number(member(1)), kinds.number(other)) == (0, 1)


def test_members_of_one_kind_share_nothing_that_can_be_changed() -> None:
    kinds = Kinds(SharedValues())
    packed = [pack_member(member(number), kinds, BASE) for number in (1, 2)]
    first, second = unpack_members(packed, KindsRead(kinds.table.values), BASE)
    assert first.field_times is not second.field_times
    assert second == member(2)


def test_a_time_is_written_as_how_long_ago_it_was() -> None:
    assert (time_before(9_000, BASE), time_before(None, BASE)) == (1_000, None)
