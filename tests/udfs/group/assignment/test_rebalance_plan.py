"""What a rebalance is decided from."""

from __future__ import annotations

import pytest

from tests.udfs.group.group_script import T0, Script, two_members
from udfs.model.events import QueueRef


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


@pytest.mark.parametrize("cut", [(900,), (250, 900), (150, 250, 350, 900)])
def test_queues_that_a_member_still_claims_are_of_the_same_move_in_every_counted_generation(
    cut: tuple[int, ...],
) -> None:
    script = Script()
    script.queues(0, "t", 4)
    how = {"strategies": ("cooperative-sticky",)}
    everything = tuple(QueueRef("t", number) for number in range(4))
    script.join(100, "a", **how)
    script.join(200, "b", owned=(), **how)
    script.join(300, "c", owned=(), **how)
    script.beat(300, "a", owned=everything, **how)
    script.join(400, "a", owned=everything[:2], **how)
    for clock in cut:
        script.run(clock)
    assert [row.unassigned_queues for row in script.rebalances] == [0, 2, 2, 0]
    first = script.rebalances[1].rebalance_id
    assert [row.logical_id for row in script.rebalances[1:]] == [first] * 3
    assert script.findings() == []
