"""What members are described by, field by field."""

from __future__ import annotations

from typing import Any

import pytest

from udfs.group.format.field_times import DESCRIBED
from udfs.group.members.descriptions import distinct, has_description, set_description
from udfs.group.state.group import Member
from udfs.model.events import MemberFields


def member(**fields: Any) -> Member:
    return Member(member_id="m", name="m", joined_at=0, **fields)


def test_each_field_has_the_value_of_the_newest_event_time_that_carried_it() -> None:
    described = member(host="h", field_times={"host": 50, "rack": 50})
    assert set_description(described, MemberFields(host="older", rack="older", client_id="i"), 49) == (
        {"client_id"},
        True,
    )
    assert (described.host, described.rack, described.client_id) == ("h", None, "i")
    # Of one time the last applied counts; the same value is no change, but newer.
    assert set_description(described, MemberFields(host="new", client_id="i"), 50) == ({"host"}, False)
    assert (described.host, described.field_times) == ("new", {"host": 50, "rack": 50, "client_id": 50})
    # An older event with the same value is not outdated: it says nothing else.
    assert set_description(described, MemberFields(host="new"), 40) == (set(), False)


def test_subscriptions_are_a_set() -> None:
    described = member()
    assert set_description(described, MemberFields(subscriptions=("u", "t", "u")), 1) == ({"subscriptions"}, False)
    assert described.subscriptions == ("t", "u") == distinct(["u", "t", "t"])
    assert set_description(described, MemberFields(subscriptions=("u", "t")), 2) == (set(), False)


@pytest.mark.parametrize("field", DESCRIBED)
def test_every_field_alone_is_a_description(field: str) -> None:
    values = {"subscriptions": (), "strategies": (), "strategy_settings": {}, "owned": (), "ordered": False}
    value = values.get(field, 0 if field.endswith(("_ms", "generation")) else "x")
    assert has_description(MemberFields(**{field: value}))
    assert not has_description(MemberFields())
