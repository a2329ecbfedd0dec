"""A group in a batch: what it writes, what it remembers, up to which limits."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core_config import core_config
from tests.udfs.group.group_script import T0, Script, Topics
from udfs.group.batch.context import GroupContext
from udfs.group.state.group import MAX_EVIDENCE, Group, Member
from udfs.model.errors import InvariantError
from udfs.model.group_api import GroupInput
from udfs.model.journal import MemberReopened


def test_the_members_that_departed_first_are_forgotten_first() -> None:
    script = Script(max_departed_members=2)
    for number in range(4):
        script.join(10 + number, f"m{number}")
        script.leave(100 + number, f"m{number}")
    script.run(200)
    assert list(script.group.departed) == ["m2", "m3"]


def context(group: Group, **fields: Any) -> GroupContext:
    """Open a group for a batch whose clock is ``T0 + 1000``."""
    given = {"cluster": "c", "system": "kafka", "group_id": "g", "clock_before": None, "clock": T0 + 1_000}
    return GroupContext(group, GroupInput(**{**given, "detected_at": 0, **fields}), Topics(), core_config())


def member(member_id: str, **fields: Any) -> Member:
    return Member(member_id=member_id, name=member_id, joined_at=T0, **fields)


def test_one_cause_is_named_once_in_the_rebalance_that_is_pending() -> None:
    one = context(Group())
    one.cause(T0 + 5, "member_joined", "a", event_id="first")
    one.cause(T0 + 9, "member_joined", "a", event_id="again")
    one.cause(T0 + 7, "member_joined", "b")
    pending = one.group.pending
    assert pending is not None
    assert (pending.opened_at, pending.changed_at) == (T0 + 5, T0 + 9)
    assert [(trigger.member_id, trigger.event_id) for trigger in pending.triggers] == [("a", "first"), ("b", None)]


def test_in_a_group_of_reported_generations_a_cause_is_evidence_up_to_a_limit() -> None:
    one = context(Group(generation=1))
    one.cause(T0 + 5, "member_left", "a")
    one.cause(T0 + 4, "member_left", "b")
    one.cause(T0 + 5, "member_left", "a")
    assert one.group.pending is None
    assert [(item.time - T0, item.member_id) for item in one.group.evidence] == [(4, "b"), (5, "a")]
    for number in range(MAX_EVIDENCE):
        one.cause(T0 + 10 + number, "member_joined", f"m{number}")
    assert len(one.group.evidence) == MAX_EVIDENCE
    assert one.group.evidence[0].member_id == "m0"


def test_departures_of_a_member_that_was_alive_later_are_no_evidence_any_more() -> None:
    one = context(Group(generation=1))
    for at, kind, name in ((1, "member_left", "a"), (2, "session_expired", "a"), (2, "member_left", "b")):
        one.cause(T0 + at, kind, name)  # type: ignore[arg-type]
    one.cause(T0 + 1, "subscription_changed", "a")
    one.cause(T0 + 5, "member_left", "a")
    one.take_back_evidence("a", T0 + 5)
    assert [(item.kind, item.member_id, item.time - T0) for item in one.group.evidence] == [
        ("subscription_changed", "a", 1),
        ("member_left", "b", 2),
        ("member_left", "a", 5),
    ]


def test_a_session_is_watched_when_its_deadline_is_before_the_clock() -> None:
    for timeout, due in ((999, True), (1_000, False)):
        one = context(Group(members={"a": member("a", session_timeout_ms=timeout)}), last_heartbeat={"a": T0})
        one.schedule_expiry("a")
        assert (one.queue.next_at() is not None) is due
    one.schedule_expiry("unknown")
    with pytest.raises(InvariantError, match="a member"):
        context(Group(), last_heartbeat={"a": T0}).schedule_expiry("a")


def test_what_applies_late_applies_not_before_what_was_applied_already() -> None:
    one = context(Group(last_applied=T0 + 50))
    assert [one.not_before_applied(T0 + at) - T0 for at in (40, 50, 60)] == [50, 50, 60]


def test_heartbeats_never_move_back() -> None:
    one = context(Group(last_heartbeats={"a": T0 + 1}))
    for at in (5, 3, 7):
        one.note_heartbeat("a", T0 + at)
    assert (one.applied_heartbeats, one.group.last_heartbeats) == ({"a": T0 + 7}, {})


def test_a_pending_rebalance_is_dropped_when_its_changes_have_cancelled_out() -> None:
    one = context(Group())
    one.cause(T0 + 5, "member_joined", "a")
    one.cancel_pending()
    assert one.group.pending is None


def test_a_session_that_continues_is_written_at_the_time_of_its_proof() -> None:
    one = context(Group())
    one.open_session(member("a"), T0)
    one.close_session("a", T0 + 5, T0 + 5, "gone")
    one.reopen_session(one.group.departed["a"], T0 + 9)
    last = one.output.changes[-1]
    assert (last.event_time - T0, last.body) == (9, MemberReopened(member_id="a", joined_at=T0))
    assert (list(one.group.members), one.group.departed) == (["a"], {})
