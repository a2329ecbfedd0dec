"""Deadlines: what keeps a session, what takes its expiry back."""

from __future__ import annotations

import pytest

from tests.udfs.group.group_script import Script


@pytest.mark.parametrize("fields", [{}, {"client_id": "one"}])
def test_a_heartbeat_at_the_very_deadline_keeps_the_session_also_when_it_comes_after_the_expiry(
    fields: dict[str, str],
) -> None:
    script = Script(session_timeouts_ms={"kafka": 1_000})
    script.join(10, "a")
    script.run(1_500)
    assert script.sessions() == ["a 10..1010 expired"]
    script.beat(1_010, "a", **fields)
    script.run(1_600)
    assert script.sessions() == ["a 10.."]
    assert script.decided()[2:] == ["1500 #3 0->1 member_joined:a late_evidence:a"]


def test_where_generations_are_reported_such_a_heartbeat_takes_the_expiry_back() -> None:
    script = Script(session_timeouts_ms={"kafka": 1_000})
    script.snapshot(5, 1, {"a": ["t"], "b": ["t"]})
    script.beat(10, "a")
    script.run(1_500)
    script.beat(1_010, "a")
    script.run(1_600)
    script.snapshot(1_700, 2, {"b": ["t"]})
    script.run(1_800)
    assert script.decided()[1:] == ["1700 #2 2->1 member_gone:a"]


@pytest.mark.parametrize("cut", [[3_000], [600, 1_500, 3_000]])
def test_a_member_that_left_does_not_expire_before_a_generation_shows_its_departure(cut: list[int]) -> None:
    script = Script(session_timeouts_ms={"kafka": 1_000})
    script.snapshot(5, 1, {"a": ["t"], "b": ["t"]})
    script.beat(10, "a")
    script.leave(500, "a")
    script.snapshot(2_000, 2, {"b": ["t"]})
    for clock in cut:
        script.run(clock)
    assert script.decided()[1:] == ["2000 #2 2->1 member_left:a"]
    assert script.sessions() == ["a 5..500 left", "b 5.."]


def test_a_late_heartbeat_that_changes_a_description_ends_no_session_before_it_was_applied() -> None:
    script = Script(session_timeouts_ms={"kafka": 1_000})
    script.poll(10, "a", "b")
    script.beat(20, "b")
    script.run(5_000)
    script.beat(30, "a", rack="r")
    script.run(6_000)
    assert script.sessions() == ["a 10..5000 expired", "b 10..1020 expired"]
    assert script.decided()[1:] == ["1020 #2 2->1 session_expired:b", "5000 #3 1->0 session_expired:a"]
