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


def test_a_change_of_queues_renews_the_time_since_when_a_member_holds_them() -> None:
    script = Script()
    script.queues(0, "t", 3)
    script.join(10, "a")
    script.join(20, "b")
    script.join(30, "c")
    script.leave(40, "c")
    script.run(50)
    assert script.owners(25) == {"t/0": "a", "t/1": "a", "t/2": "b"}
    assert script.owners(35) == {"t/0": "a", "t/1": "b", "t/2": "c"}
    assert {name: member.holds_since - T0 for name, member in script.group.members.items()} == {"a": 40, "b": 40}


def test_spans_of_a_static_member_are_split_at_its_return_and_not_after_a_rebalance_that_follows() -> None:
    script = Script()
    script.queues(0, "t", 2)
    script.join(10, "i-1", instance_id="i")
    script.join(20, "b")
    script.join(500, "i-2", instance_id="i")
    script.leave(900, "b")
    script.run(1_000)
    assert script.spans() == ["t/0 i-1 10..500", "t/0 i-2 500..", "t/1 b 20..900", "t/1 i-1 10..20", "t/1 i-2 900.."]
    assert script.group.replaced == []
