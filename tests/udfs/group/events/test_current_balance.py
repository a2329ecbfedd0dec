"""How evenly queues are owned now is shown between rebalances, too."""

from __future__ import annotations

from tests.udfs.group.group_script import Script


def one_member() -> Script:
    script = Script("metaq")
    script.queues(0, "t", 2)
    script.snapshot(10, None, {"a": ["t"]})
    return script


def test_a_finding_of_unread_queues_survives_a_rebalance_that_does_not_change_it() -> None:
    script = one_member()
    script.holds(20, "a", [("t", 0)])
    script.snapshot(40_000, None, {"a": ["t"], "b": ["t"]})
    script.holds(40_100, "a", [("t", 0)])
    script.holds(40_200, "b", [])
    script.run(80_000)
    assert "unassigned_queues 32010.." in script.findings()
