"""When each field was reported, in few bytes."""

from __future__ import annotations

from typing import Any

import pytest

from udfs.group.format.field_times import DESCRIBED, PresentFields, pack_field_times, unpack_field_times
from udfs.group.format.owners_format import SharedValues
from udfs.group.state.group import Member
from udfs.model.events import MemberFields

BASE = 1_000


def member(field_times: dict[str, int], **fields: Any) -> Member:
    return Member(member_id="m", name="m", joined_at=500, field_times=field_times, **fields)


@pytest.mark.parametrize(
    ("described", "packed"),
    [
        (member({}), None),
        (member({"host": 500, "rack": 500}, host="h", rack="r"), None),
        # All by one later event: its age.
        (member({"host": 700, "rack": 700}, host="h", rack="r"), [300]),
        (member({"host": 700, "rack": 800}, host="h", rack="r"), [0, 0]),
        # Of no field a time is known: a state of an earlier release.
        (member({}, host="h"), [0, 0]),
        # A field that was reported as null has a time, too.
        (member({"host": 500}), [0, 0]),
        (member({"host": 500}, host="h", rack="r"), [0, 0]),
    ],
)
def test_one_time_is_stored_for_all_fields_where_one_event_reported_them(
    described: Member, packed: list[int] | None
) -> None:
    table = SharedValues()
    present = PresentFields().of(described, 0)
    times = pack_field_times(described, present, BASE, table.number)
    assert times == packed
    assert unpack_field_times(described, present, times or [], table.values, BASE) == described.field_times


def test_members_of_one_poll_share_their_times() -> None:
    table = SharedValues()
    reported = {"host": 700, "rack": 800}
    members = [member(reported, host=f"h{number}", rack="r") for number in range(3)]
    packed = [pack_field_times(described, ["host", "rack"], BASE, table.number) for described in members]
    assert packed == [[0, 0]] * 3
    assert len(table.values) == 1


def test_members_of_one_kind_have_other_fields_only_where_these_are_their_own() -> None:
    present = PresentFields()
    assert present.of(member({}, language="JAVA", host="h"), 7) == ("host", "language")
    assert present.of(member({}, language="GO", rack="r"), 7) == ("language", "rack")
    assert present.of(member({}, host="h", rack="r"), 8) == ("host", "rack")
    for name in ("client_id", "host", "instance_id", "rack", "owned", "owned_generation"):
        assert present.of(member({}, **{name: 1}), 9) == (name,)


def test_every_field_that_an_event_may_carry_has_its_time_and_its_place_for_ever() -> None:
    assert set(DESCRIBED) == set(MemberFields.__struct_fields__)
    # States hold the places.
    assert DESCRIBED[:3] == ("subscriptions", "strategies", "client_id")
    assert DESCRIBED[12:] == ("rack", "owned", "owned_generation", "protocol", "process_id")
