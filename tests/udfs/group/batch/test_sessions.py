"""Sessions of members in a batch: how they begin, are continued, end."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core_config import core_config
from tests.udfs.group.group_script import T0, Topics
from udfs.group.batch.sessions import GroupSessions, closed
from udfs.group.state.group import Group, Member
from udfs.model.errors import InvariantError
from udfs.model.group_api import GroupInput
from udfs.model.journal import MemberReopened


def sessions(group: Group, **fields: Any) -> GroupSessions:
    """Open a group for a batch whose clock is ``T0 + 1000``."""
    given = {"cluster": "c", "system": "kafka", "group_id": "g", "clock_before": None, "clock": T0 + 1_000}
    return GroupSessions(group, GroupInput(**{**given, "detected_at": 0, **fields}), Topics(), core_config())


def member(member_id: str, **fields: Any) -> Member:
    return Member(member_id=member_id, name=member_id, joined_at=T0, **fields)


def test_a_session_is_watched_when_its_deadline_is_before_the_clock() -> None:
    for timeout, due in ((999, True), (1_000, False)):
        group_sessions = sessions(
            Group(members={"a": member("a", session_timeout_ms=timeout)}), last_heartbeat={"a": T0}
        )
        group_sessions.schedule_expiry("a")
        assert (group_sessions.queue.next_at() is not None) is due
    group_sessions.schedule_expiry("unknown")
    with pytest.raises(InvariantError, match="a member"):
        sessions(Group(), last_heartbeat={"a": T0}).schedule_expiry("a")


def test_late_events_do_not_apply_before_changes_already_applied() -> None:
    group_sessions = sessions(Group(last_applied=T0 + 50))
    assert [group_sessions.not_before_applied(T0 + at) - T0 for at in (40, 50, 60)] == [50, 50, 60]


def test_heartbeats_never_move_back() -> None:
    group_sessions = sessions(Group(last_heartbeats={"a": T0 + 1}))
    for at in (5, 3, 7):
        group_sessions.note_heartbeat("a", T0 + at)
    assert (group_sessions.applied_heartbeats, group_sessions.group.last_heartbeats) == ({"a": T0 + 7}, {})


def test_a_session_that_continues_is_written_at_the_time_of_its_proof() -> None:
    group_sessions = sessions(Group())
    group_sessions.open_session(member("a"), T0)
    group_sessions.close_session("a", T0 + 5, T0 + 5, "gone")
    group_sessions.reopen_session(group_sessions.group.departed["a"], T0 + 9, heartbeat_at=T0 + 8)
    last = group_sessions.output.changes[-1]
    assert (last.event_time - T0, last.body) == (9, MemberReopened(member_id="a", joined_at=T0))
    assert (list(group_sessions.group.members), group_sessions.group.departed, group_sessions.applied_heartbeats) == (
        ["a"],
        {},
        {"a": T0 + 8},
    )


def test_a_late_heartbeat_moves_the_end_of_an_expired_session() -> None:
    group_sessions = sessions(Group(members={"a": member("a")}))
    group_sessions.close_session("a", T0 + 90, T0 + 50, "expired")
    group_sessions.extend_session(group_sessions.group.departed["a"], T0 + 95, left_at=T0 + 60, heartbeat_at=T0 + 20)
    departed = group_sessions.group.departed["a"]
    assert (departed.left_at - T0, departed.last_heartbeat_at) == (60, T0 + 20)
    assert group_sessions.output.changes[-1].body == closed(departed.member, T0 + 60, "expired", T0 + 20)


def test_a_static_member_under_a_new_id_lives_by_heartbeats_once_it_sends_one() -> None:
    group_sessions = sessions(Group(members={"a-2": member("a")}), last_heartbeat={"a": T0})
    group_sessions.replace_session("a", "a-2", T0 + 5)
    now, former = group_sessions.group.members["a-2"], group_sessions.group.departed["a"].member
    assert (now.member_id, now.by_heartbeats, former.member_id, former.by_heartbeats) == ("a-2", False, "a", True)
    assert group_sessions.applied_heartbeats == {}
    group_sessions.open_session(now, T0 + 5, former="a", heartbeat_at=T0 + 4)
    assert (now.by_heartbeats, group_sessions.applied_heartbeats) == (True, {"a-2": T0 + 4})


def test_a_member_that_left_and_rejoined_at_once_keeps_its_session() -> None:
    for host, written in (("h", 0), ("another", 1)):  # it is described otherwise
        group_sessions = sessions(Group(members={"a": member("a", host="h", holds_since=T0 + 1)}))
        group_sessions.begin_event_time()
        group_sessions.close_session("a", T0 + 5, T0 + 5, "left")
        group_sessions.open_session(member("a", host=host), T0 + 5)
        group_sessions.write_sessions(T0 + 5)
        now = group_sessions.group.members["a"]
        assert (now.joined_at, now.holds_since, len(group_sessions.output.changes)) == (T0, T0 + 1, written)


def test_of_a_member_that_departs_twice_at_once_the_last_departure_counts() -> None:
    group_sessions = sessions(Group(members={"a": member("a")}))
    group_sessions.begin_event_time()
    group_sessions.close_session("a", T0 + 5, T0 + 5, "left")
    group_sessions.open_session(member("a"), T0 + 5)
    group_sessions.close_session("a", T0 + 5, T0 + 5, "absent_from_snapshot")
    group_sessions.write_sessions(T0 + 5)
    (change,) = group_sessions.output.changes
    assert change.body == closed(member("a"), T0 + 5, "absent_from_snapshot", None)
