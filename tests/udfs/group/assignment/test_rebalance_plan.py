"""What a rebalance is decided from."""

from __future__ import annotations

from tests.udfs.group.group_script import T0, Script, two_members


def test_reports_of_all_at_the_time_of_a_rebalance_are_compared_in_its_row() -> None:
    script = Script("rocketmq")
    script.queues(0, "t", 4)
    script.poll(10, "a", "b")
    script.holds(10, "a", [("t", 0), ("t", 1)])
    script.holds(10, "b", [("t", 2), ("t", 3)])
    script.poll(1_000, "a", "b", "c")
    script.holds(1_000, "a", [("t", 0), ("t", 1)])
    script.holds(1_000, "b", [("t", 2), ("t", 3)])
    script.poll(2_000, "a", "b")
    script.holds(2_000, "a", [("t", 0), ("t", 1)])
    script.holds(2_000, "b", [("t", 2), ("t", 3)])
    script.poll(3_000, "a", "b", "d")
    script.holds(3_000, "d", [])
    script.holds(3_000, "a", [("t", 0), ("t", 1)])
    script.holds(3_000, "b", [("t", 2), ("t", 3)])
    script.run(4_000)
    # c says nothing; d has not taken over what is its own.
    assert [(row.agrees, row.queues_differing) for row in script.rebalances] == [
        (True, 0),
        (None, None),
        (True, 0),
        (False, 1),
    ]
    assert script.findings() == []


def test_a_report_at_the_time_of_a_rebalance_belongs_to_it() -> None:
    script = two_members()
    script.holds(10, "a", [("t", 0)])
    script.run(20)
    body = next(change.body for change in script.changes if getattr(change.body, "origin", "") == "reported")
    assert (body.generation, body.rebalance_id, body.valid_from) == (1, script.rebalances[0].rebalance_id, T0 + 10)
