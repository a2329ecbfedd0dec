"""Spans in the journal."""

from __future__ import annotations

from udfs.model.spans import QueueCost, ReassignedTopic


def test_topics_do_not_share_their_costs() -> None:
    one, other = ReassignedTopic("t", None, [], []), ReassignedTopic("t", None, [], [])
    one.costs.append(QueueCost(0, 5))
    assert other.costs == []
