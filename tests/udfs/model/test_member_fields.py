"""Each field of a member's description goes everywhere by its one definition: a new one is tested by being there."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from streaming.tables.schema import TABLES
from tests.udfs.group.group_script import T0, Script
from udfs.group.format.field_times import DESCRIBED
from udfs.group.format.snapshot import snapshot_of
from udfs.group.format.state_format import GROUP_VERSION, decode_group, encode_group
from udfs.group.members.descriptions import set_description
from udfs.model.events import MemberInfo, QueueRef
from udfs.model.journal import MemberOpened
from udfs.model.member_fields import ADDED, FIELDS, SHOWN, TRAITS, kind_of

_BY_KIND: dict[type, Any] = {str: "text", int: 7, bool: True, tuple: ("t",), dict: {"virtual_nodes": 7}}
VALUES = {name: _BY_KIND[kind_of(name)] for name in FIELDS} | {"owned": (QueueRef("t", 0),)}


def joined(**described: Any) -> Script:
    script = Script()
    script.join(10, "m", described.pop("subscriptions", None), **described)
    return script.run(11) and script


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_is_reported_kept_in_the_state_and_exported(name: str):
    group = joined().group
    set_description(group.members["m"], MemberInfo(member_id="m", **{name: VALUES[name]}), T0 + 10)
    group = decode_group(encode_group(group))
    assert getattr(group.members["m"], name) == VALUES[name]
    assert group.members["m"].field_times[name] == T0 + 10
    (info,) = snapshot_of(group, {}, T0 + 20).members
    assert getattr(info, name) == VALUES[name]


def test_the_state_has_each_field_and_those_of_newer_encodings_at_the_end():
    assert len(DESCRIBED) == len(FIELDS)
    assert set(DESCRIBED) == set(FIELDS)
    assert DESCRIBED[len(DESCRIBED) - len(ADDED) :] == ADDED
    since = [TRAITS[name].since for name in DESCRIBED]
    assert since == sorted(since)
    assert since[-1] <= GROUP_VERSION


@pytest.mark.parametrize("name", SHOWN)
def test_shown_fields_are_in_the_journal_and_have_columns(name: str):
    (opened,) = [change.body for change in joined(**VALUES).changes if isinstance(change.body, MemberOpened)]
    assert msgspec.to_builtins(opened)[name] == VALUES[name]
    (column,) = [column for column in TABLES["members"].columns if column.name == name]
    assert column.comment == TRAITS[name].comment != ""


def test_columns_stand_where_tables_of_earlier_releases_have_them():
    assert TABLES["members"].names[:18] == (
        *(
            "cluster",
            "group_id",
            "member_id",
            "client_id",
            "host",
            "instance_id",
            "rack",
            "subscriptions",
            "strategies",
        ),
        *("joined_at", "last_heartbeat_at", "left_at", "left_reason", "lives_by", "session_timeout_ms"),
        *("former_member_id", "client_version", "language"),
    )
