"""What is advised, and what is not: a table of replayed groups, with the nearest cases that are no advice."""

from __future__ import annotations

from typing import Any

import pytest

from streaming.history import advice as advice_module
from streaming.history.advice import asked_of, group_advice
from streaming.tables.schema import Row


def row(policy: str | None, **more: Any) -> Row:
    """Return a row of a group that moved 100 queues in 20 rebalances, each of which stood for a second."""
    figures = {"rebalances": 20, "queues_moved": 100, "queue_pause_ms": 90_000, "repeated_messages": 5_000}
    figures["waiting_pause_ms"] = 0
    means = {"idle_members": 0.0, "spread": 1.0, "queue_outage_max_ms": None}
    each = {"move_pause_ms": 1_000, "move_repeated_messages": 50.0, "measured_rebalances": 20}
    changed = {"gone_rebalances": 0, "gone_rebalance_ids": [], "added_rebalances": 0, "not_reproduced": 0, "notes": []}
    changed["settings"] = [f"{policy}: group.instance.id"] if policy else []
    named = {"cluster": "shop", "system": "rocketmq", "group_id": "orders", "policy": policy, "unknown": None}
    stopped = {"queues_stopped": more.get("queues_moved", 100)}
    return named | figures | means | each | changed | stopped | more


RECORDED = row(None)


@pytest.mark.parametrize(
    ("recorded", "replayed", "saved"),
    [
        # A minute of queue-pause is enough, a second less is not; then the messages decide.
        ({}, {"queues_moved": 40}, (60_000, 3_000)),
        ({"move_repeated_messages": None}, {"queues_moved": 40}, (60_000, None)),
        ({"move_repeated_messages": None}, {"queues_moved": 41}, None),
        ({"move_repeated_messages": 16.0}, {"queues_moved": 41}, None),
        ({"move_repeated_messages": 17.0}, {"queues_moved": 41}, (59_000, 1_003)),
        ({"move_pause_ms": None, "measured_rebalances": 0}, {"queues_moved": 80}, (None, 1_000)),
        # Less than a tenth of the moves is nothing, however much it is.
        ({"move_pause_ms": 60_000}, {"queues_moved": 90}, (600_000, 500)),
        ({"move_pause_ms": 60_000}, {"queues_moved": 91}, None),
        # While rebalances wait for silent members all queues stand still.
        ({}, {"queues_moved": 20, "waiting_pause_ms": 20_000}, (60_000, 4_000)),
        ({"move_repeated_messages": None}, {"queues_moved": 20, "waiting_pause_ms": 20_001}, None),
        ({}, {"queues_moved": 20, "waiting_pause_ms": 80_001}, None),
        # As many moves, or more, save nothing, whatever the sums say: one is measured, the other a median.
        ({"queue_pause_ms": 9_000_000}, {"queue_pause_ms": 100_000}, None),
        ({}, {"queues_moved": 150}, None),
        ({"queues_moved": 0}, {"queues_moved": 0}, None),
        # Queues that stand still cost pause, though none moves; those that move are read twice.
        ({}, {"queues_stopped": 30}, (70_000, 0)),
        ({}, {"queues_moved": 0, "queues_stopped": 100}, None),
        # Where not every generation is decided, what moved is a part.
        ({}, {"queues_moved": 0, "queues_stopped": None, "unknown": "queues_stopped: not every generation"}, None),
        # What was never measured is unknown, and no saving.
        ({"move_pause_ms": None, "move_repeated_messages": None, "measured_rebalances": 0}, {"queues_moved": 0}, None),
    ],
)
def test_a_saving_is_advice_from_the_threshold_on(
    recorded: Row, replayed: Row, saved: tuple[int | None, int | None] | None
) -> None:
    found = group_advice([row(None, **recorded), row("static", **replayed)])
    assert [(advice.saved_pause_ms, advice.saved_repeated) for advice in found.advice] == ([saved] if saved else [])


def test_the_largest_saving_comes_first() -> None:
    rows = [RECORDED, row("a", queues_moved=30), row("b", queues_moved=10), row("c", queues_moved=30)]
    assert [advice.policy for advice in group_advice(rows).advice] == ["b", "a", "c"]


def test_advice_names_what_would_not_have_been_what_it_costs_and_what_to_set() -> None:
    replayed = row(
        "static",
        rebalances=8,
        queues_moved=20,
        gone_rebalances=12,
        gone_rebalance_ids=["r1", "r2"],
        idle_members=0.4,
        spread=1.02,
        notes=["3 departures would have been noticed later"],
        added_rebalances=1,
    )
    (advice,) = group_advice([RECORDED, replayed]).advice
    assert (advice.fewer_rebalances, advice.fewer_moves, advice.gone_rebalances) == (12, 80, 12)
    assert advice.gone_rebalance_ids == ["r1", "r2"]
    assert advice.costs == [
        "3 departures would have been noticed later",
        "1 rebalance at times at which there was none",
        "members without queues: 0.4 instead of 0.0, on average over time",
    ]
    assert advice.settings == ["static: group.instance.id"]
    assert advice.assumes[0] == "a queue that stops stands for 1.0 s, the median of 20 rebalances of this group"


@pytest.mark.parametrize(
    ("measured", "not_reproduced", "sure"),
    [
        (20, 0, "good"),
        (19, 0, "fair"),
        (20, 1, "fair"),
        (20, 2, "fair"),
        (20, 3, "weak"),
        (5, 0, "fair"),
        (4, 0, "weak"),
    ],
)
def test_how_sure_it_is_follows_from_what_was_measured(measured: int, not_reproduced: int, sure: str) -> None:
    recorded = RECORDED | {"measured_rebalances": measured, "not_reproduced": not_reproduced}
    (advice,) = group_advice([recorded, row("static", queues_moved=0)]).advice
    assert advice.sure == sure


def test_what_is_unknown_has_its_reason() -> None:
    nothing = {"rebalances": None, "unknown": "the tables have no rebalances of group orders"}
    assert group_advice([RECORDED | nothing, row("static", **nothing)]).unknown == nothing["unknown"]
    refused = row("static", rebalances=None, queues_stopped=None, unknown="not computed yet")
    assert group_advice([RECORDED, refused]).unknown == "not computed yet"
    unmeasured = RECORDED | {"move_pause_ms": None, "move_repeated_messages": None}
    assert "was never measured" in str(group_advice([unmeasured, row("static")]).unknown)
    assert group_advice([RECORDED, row("static"), refused]).unknown is None


def test_what_is_no_policy_of_this_release_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advice_module, "POLICIES", ("without a", "faster", "queues t=3"))
    asked = asked_of(5)
    assert (asked.policies, asked.since_ms, asked.all_strategies) == (("without a", "queues t=3"), 5, True)
