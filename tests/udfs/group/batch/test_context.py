"""A group in a batch: what it writes, what it remembers, up to which limits."""

from __future__ import annotations

from typing import Any

from tests.core_config import core_config
from tests.udfs.group.group_script import T0, Topics
from udfs.group.batch.context import GroupContext
from udfs.group.state.group import MAX_EVIDENCE, Group
from udfs.model.group_api import GroupInput


def context(group: Group, **fields: Any) -> GroupContext:
    """Open a group for a batch whose clock is ``T0 + 1000``."""
    given = {"cluster": "c", "system": "kafka", "group_id": "g", "clock_before": None, "clock": T0 + 1_000}
    return GroupContext(group, GroupInput(**{**given, "detected_at": 0, **fields}), Topics(), core_config())


def test_one_cause_is_named_once_in_the_rebalance_that_is_pending() -> None:
    group_context = context(Group())
    for at, name, event_id in ((5, "a", "first"), (9, "a", "again"), (7, "b", None)):
        group_context.cause(T0 + at, "member_joined", name, event_id=event_id)
        group_context.take_causes(group_context.before.causes, T0 + at)
    pending = group_context.group.pending
    assert pending is not None
    assert (pending.opened_at, pending.changed_at) == (T0 + 5, T0 + 9)
    assert [(trigger.member_id, trigger.event_id) for trigger in pending.triggers] == [("a", "first"), ("b", None)]


def test_in_a_group_of_reported_generations_a_cause_is_evidence_up_to_a_limit() -> None:
    group_context = context(Group(generation=1))
    group_context.cause(T0 + 5, "member_left", "a")
    group_context.cause(T0 + 4, "member_left", "b")
    group_context.cause(T0 + 5, "member_left", "a")
    assert group_context.group.pending is None
    assert [(item.time - T0, item.member_id) for item in group_context.group.evidence] == [(4, "b"), (5, "a")]
    for number in range(MAX_EVIDENCE):
        group_context.cause(T0 + 10 + number, "member_joined", f"m{number}")
    assert len(group_context.group.evidence) == MAX_EVIDENCE
    assert group_context.group.evidence[0].member_id == "m0"


def test_departures_of_a_member_that_was_alive_later_are_no_evidence_any_more() -> None:
    group_context = context(Group(generation=1))
    for at, kind, name in ((1, "member_left", "a"), (2, "session_expired", "a"), (2, "member_left", "b")):
        group_context.cause(T0 + at, kind, name)  # type: ignore[arg-type]
    group_context.cause(T0 + 1, "subscription_changed", "a")
    group_context.cause(T0 + 5, "member_left", "a")
    group_context.take_back_evidence("a", T0 + 5)
    assert [(item.kind, item.member_id, item.time - T0) for item in group_context.group.evidence] == [
        ("subscription_changed", "a", 1),
        ("member_left", "b", 2),
        ("member_left", "a", 5),
    ]


def test_a_pending_rebalance_is_dropped_when_its_changes_have_cancelled_out() -> None:
    group_context = context(Group())
    group_context.cause(T0 + 5, "member_joined", "a")
    group_context.cancel_pending()
    assert group_context.group.pending is None
