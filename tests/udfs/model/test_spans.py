"""Spans in the journal."""

from __future__ import annotations

from udfs.model.spans import QueueCost, ReassignedTopic


def test_topics_do_not_share_their_costs() -> None:
    first, other = ReassignedTopic("t", None, [], []), ReassignedTopic("t", None, [], [])
    first.costs.append(QueueCost(0, 5))
    assert other.costs == []
