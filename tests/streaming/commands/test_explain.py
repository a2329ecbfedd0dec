"""The command `explain`."""

from __future__ import annotations

from pathlib import Path

from streaming.tables.shared_columns import COST_NAMES
from tests.streaming.views.story import SECOND, json_of, run


def test_explain_in_json_names_each_queue_that_changed_hands(tables: Path) -> None:
    (report,) = json_of(tables, "explain", SECOND)
    assert report["moves"]["computed"] == [
        {
            "topic": "orders",
            "broker": None,
            "queue_id": 1,
            "before": ["a"],
            "after": ["b"],
            **dict.fromkeys((*COST_NAMES, "outage_min_ms", "outage_max_ms")),
        }
    ]
    assert report["causes"][0]["host"] == "h2"
    assert report["rebalance"]["event_time"] == "2026-01-01T00:00:10.000Z"


def test_explain_reports_to_people_and_refuses_what_is_not_there(tables: Path) -> None:
    assert run(tables, "explain", SECOND).stdout.startswith(f"Rebalance {SECOND}\n")
    absent = run(tables, "explain", "zz")
    assert (absent.exit_code, absent.stdout) == (2, "")
    assert "there is no rebalance zz" in absent.stderr
