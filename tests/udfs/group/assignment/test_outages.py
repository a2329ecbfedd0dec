"""For how long nobody read queues that changed or lost their owner: at least, and at most."""

from __future__ import annotations

from tests.udfs.group.assignment.rebalance_row import rebalance_row
from udfs.group.assignment.outages import Outage, add_outages, listed
from udfs.model.queue_outages import MAX_LISTED_OUTAGES, QueueOutage


def test_the_longest_are_listed_and_unknown_ones_first() -> None:
    many = {("t", None, number): Outage(0, number) for number in range(MAX_LISTED_OUTAGES + 5)}
    found = listed(many | {("t", None, 7): Outage()})
    assert len(found) == MAX_LISTED_OUTAGES
    assert found[:2] == [QueueOutage("t", None, 7), QueueOutage("t", None, MAX_LISTED_OUTAGES + 4, None, None, 0, 104)]


def test_a_queue_without_an_upper_bound_counts_with_its_lower_one_on_both_sides() -> None:
    row = rebalance_row()
    add_outages(row, {("t", None, 0): Outage(2_000, 5_000), ("t", None, 1): Outage(60_000)})
    assert (row.outage_min_ms, row.outage_max_ms, row.outage_unknown_queues) == (62_000, 65_000, 1)
    assert (row.queue_outage_min_ms, row.queue_outage_max_ms) == (60_000, 60_000)


def test_without_any_upper_bound_the_sum_has_none() -> None:
    row = rebalance_row()
    add_outages(row, {("t", None, 0): Outage(2_000), ("t", None, 1): Outage()})
    assert (row.outage_min_ms, row.outage_max_ms, row.outage_unknown_queues) == (2_000, None, 2)
    assert (row.queue_outage_min_ms, row.queue_outage_max_ms) == (2_000, None)
