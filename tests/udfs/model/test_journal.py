"""The journal's changes: each is known by its kind, and read again as what was written."""

import typing
from typing import Any, get_args

import msgspec
import pytest

from udfs.model.journal import TRIGGER_ORDER, Body, Change, TriggerKind

BODIES = {body.__struct_config__.tag: body for body in get_args(Body)}


def filled(kind: Any) -> Any:
    """Make a value of a type, with something in every field."""
    origin, arguments = typing.get_origin(kind), get_args(kind)
    if origin is typing.Literal:
        return arguments[-1]
    if origin is list:
        return [filled(arguments[0])]
    if origin is tuple:
        return tuple(filled(argument) for argument in arguments if argument is not ...)
    if origin is dict:
        return {"broker": "b", "queue_id": 1, "racks": ["r"]}
    if arguments:
        return filled(arguments[0])
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = typing.get_type_hints(kind)
        return kind(**{name: filled(hints[name]) for name in kind.__struct_fields__})
    return {str: "text", int: 7, bool: True, object: "any"}[kind]


@pytest.mark.parametrize("kind", sorted(BODIES))
def test_a_change_is_read_as_what_was_written_by_its_kind_alone(kind: str) -> None:
    change = Change(cluster="c", group_id="g", subject=None, number=1, event_time=5, body=filled(BODIES[kind]))
    written = msgspec.json.encode(change)
    assert msgspec.json.decode(written)["body"]["kind"] == kind
    assert msgspec.json.decode(written, type=Change) == change


def test_the_kinds_are_those_that_tables_and_readers_know() -> None:
    assert set(BODIES) == {
        *("member_opened", "member_changed", "member_closed", "member_reopened", "member_replaced"),
        *("queue_resumed", "queues_reassigned", "spans_withdrawn"),
        *("group_changed", "group_removed", "rebalanced", "topic_changed", "finding_opened", "finding_closed"),
        *("finding_changed", "audited", "annotation_written", "episode_changed"),
    }


def test_the_main_trigger_is_the_one_that_explains_most() -> None:
    assert set(TRIGGER_ORDER) == set(get_args(TriggerKind))
    # A group's beginning explains its members, a departure explains more than a join, no cause explains least.
    assert TRIGGER_ORDER[0] == "group_created"
    assert TRIGGER_ORDER.index("session_expired") < TRIGGER_ORDER.index("member_left")
    assert TRIGGER_ORDER.index("member_left") < TRIGGER_ORDER.index("member_joined")
    assert TRIGGER_ORDER[-2:] == ("late_evidence", "unexplained")
