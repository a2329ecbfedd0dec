"""What a group's own rebalances tell of the next one, by hand."""

from __future__ import annotations

from typing import Any

from streaming.views.measured_rebalances import Measured, costs_of

_NOTHING = dict.fromkeys(
    ("pause_ms", "pause_estimated_ms", "queue_outage_max_ms", "repeated_messages", "repeated_estimated_messages")
) | dict.fromkeys(("waiting_messages", "waiting_estimated_messages"))


def rebalance(*kinds: str, **more: Any) -> dict[str, Any]:
    counts = {"members_before": 2, "members_after": 3, "queues_moved": 4, "queues_assigned": 1}
    triggers = [{"kind": kind} for kind in kinds]
    return {**_NOTHING, **counts, "status": "completed", "triggers": triggers} | more


def test_the_range_is_of_rebalances_of_one_kind_and_names_what_is_estimated() -> None:
    rows = [
        rebalance("group_created", members_before=0, pause_ms=90_000),
        rebalance("member_joined", pause_ms=1_000),
        rebalance("member_left", pause_estimated_ms=5_000),
        rebalance("member_joined", pause_ms=2_000, status="failed"),
        rebalance("session_expired", "member_left", pause_ms=70_000),
    ]
    assert costs_of(rows, with_expiries=False).pause_ms == Measured(1_000, 3_000, 5_000, 2, 1)
    assert costs_of(rows, with_expiries=True).pause_ms == Measured(70_000, 70_000, 70_000, 1)


def test_messages_count_for_each_queue_that_got_an_owner() -> None:
    rows = [
        rebalance("member_joined", repeated_messages=10, repeated_estimated_messages=40),
        rebalance("member_joined", repeated_messages=5, queues_moved=0, queues_assigned=0),
        rebalance("member_joined", repeated_messages=20),
    ]
    found = costs_of(rows, with_expiries=False)
    assert found.repeated == Measured(4, 7, 10, 2, 1)
    assert found.waiting is None
    assert found.repeated.times(3).messages_text() == (
        "about 21 messages (12 to 30, from 2 rebalances of this group, 1 of them estimated)"
    )


def test_a_rebalance_that_moves_no_queue_says_nothing_of_how_long_moving_queues_stand() -> None:
    still = rebalance("queue_count_changed", queues_moved=0, queue_outage_max_ms=0)
    assert costs_of([still], with_expiries=False).outage_ms is None
    moving = rebalance("member_joined", queue_outage_max_ms=800)
    assert costs_of([still, moving], with_expiries=False).outage_ms == Measured(800, 800, 800, 1)
