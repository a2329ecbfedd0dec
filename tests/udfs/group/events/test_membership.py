"""What members report themselves: descriptions, late departures, late heartbeats."""

from __future__ import annotations

from tests.udfs.group.group_script import Script


def test_a_late_heartbeat_that_describes_a_member_at_its_last_sign_of_life_is_listed() -> None:
    script = Script(session_timeouts_ms={"kafka": 1_000})
    script.join(10, "a")
    script.join(20, "b")
    script.beat(4_000, "b")
    script.run(5_000)
    script.beat(10, "a", client_id="one")
    script.run(6_000)
    assert script.last.ignored_event_ids == []
    script.beat(10, "a", client_id="one")
    script.run(7_000)
    assert len(script.last.ignored_event_ids) == 1
