"""For how long nobody read queues that changed or lost their owner: at least, and at most."""

from __future__ import annotations

from udfs.group.assignment.outages import Outage, listed
from udfs.model.queue_outages import MAX_LISTED_OUTAGES, QueueOutage


def test_the_longest_are_listed_and_unknown_ones_first() -> None:
    many = {("t", None, number): Outage(0, number) for number in range(MAX_LISTED_OUTAGES + 5)}
    found = listed(many | {("t", None, 7): Outage()})
    assert len(found) == MAX_LISTED_OUTAGES
    assert found[:2] == [QueueOutage("t", None, 7), QueueOutage("t", None, MAX_LISTED_OUTAGES + 4, None, None, 0, 104)]
