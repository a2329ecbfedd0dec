"""Costs of rebalances: sums of the known ones in the hour before a finding."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.views.reader import Reader
from streaming.views.rebalance_costs import BEFORE_MS, Cost, costs_before
from tests.streaming.tables.journals import T0
from tests.streaming.views.story import rebalance, store


def finding(name: str, at: int, group: str | None = "orders") -> dict[str, object]:
    return {"finding_id": name, "cluster": "c1", "group_id": group, "opened_at": T0 + at}


def test_rebalances_of_the_hour_up_to_the_opening_count_with_it(tmp_path: Path) -> None:
    at = 2 * BEFORE_MS
    rows = [
        rebalance("r1", at - BEFORE_MS, "member_left", "a", outage_max_ms=1_000),
        rebalance("r2", at - BEFORE_MS + 1, "member_left", "a", outage_min_ms=5, outage_max_ms=20),
        rebalance("r3", at - 1, "member_left", "a", outage_max_ms=300, outage_unknown_queues=2, repeated_messages=4),
        rebalance("r4", at, "member_left", "a", repeated_estimated_messages=50, waiting_messages=600),
        rebalance("r5", at + 1, "member_left", "a", outage_max_ms=7_000),
    ]
    store(tmp_path, rows)
    findings = [finding("f", at), finding("early", 0), finding("cluster", at, None), finding("other", at, "payments")]
    assert costs_before(Reader(tmp_path), findings) == {"f": Cost(3, 5, 320, 2, 4, 50, 600)}
    assert costs_before(Reader(tmp_path), []) == {}


@pytest.mark.parametrize(
    ("cost", "text"),
    [
        (Cost(1), "1 rebalance"),
        (Cost(1, 0, 0, 0), "1 rebalance: no queue was left unread"),
        (Cost(1, None, None, 2), "1 rebalance: nobody read 2 queues for an unknown time"),
        (Cost(2, None, None, 0, 0, None, 0), "2 rebalances: 0 messages were read twice; 0 waited for new owners"),
        (Cost(2, None, None, 0, 3, 4), "2 rebalances: 3 messages were read twice, and about 4 more (estimated)"),
    ],
)
def test_unknown_costs_are_left_out(cost: Cost, text: str) -> None:
    assert cost.text == text
