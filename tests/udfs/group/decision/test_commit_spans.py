"""Spans end and open as owners change, and under whose id."""

from __future__ import annotations

from tests.udfs.group.group_script import T0, Script


def test_a_queue_that_a_member_releases_is_paused_from_its_report_on() -> None:
    script = Script("metaq")
    script.queues(0, "t", 2)
    script.poll(10, "a")
    script.holds(20, "a", [("t", 0), ("t", 1)])
    script.holds(30, "a", [("t", 0)])
    script.run(40)
    assert {queue[2]: (idle.released_at or 0) - T0 for queue, idle in script.group.idle_queues.items()} == {1: 30}
