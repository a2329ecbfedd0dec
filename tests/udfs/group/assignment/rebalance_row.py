"""A row of a rebalance of which only the identity is set."""

from __future__ import annotations

from udfs.model.journal import Rebalance


def rebalance_row() -> Rebalance:
    """Return the row of a generation that a member joined."""
    return Rebalance(
        rebalance_id="r",
        cluster="c",
        system="kafka",
        group_id="g",
        generation=1,
        generation_source="reported",
        event_time=1,
        detected_at=1,
        trigger="member_joined",
        triggers=[],
    )
