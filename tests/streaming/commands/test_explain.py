"""The command `explain`."""

from __future__ import annotations

from pathlib import Path

import pytest

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


def test_the_last_rebalance_of_a_group_needs_no_id(tables: Path) -> None:
    (row,) = [row for row in json_of(tables, "show", "groups") if row["group_id"] == "orders"]
    text = run(tables, "explain", "--group", "orders", "--last").stdout
    assert text == run(tables, "explain", row["last_rebalance_id"]).stdout
    assert "there is no group absent" in run(tables, "explain", "-g", "absent", "--last").stderr


@pytest.mark.parametrize("arguments", [(), ("--last",), ("-g", "g"), (SECOND, "--last"), (SECOND, "-g", "g", "--last")])
def test_explain_takes_an_id_or_a_group_and_last(tables: Path, arguments: tuple[str, ...]) -> None:
    refused = run(tables, "explain", *arguments)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "--group GROUP --last" in refused.stderr
