"""The command `explain`."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.tables.shared_columns import COST_NAMES
from tests.streaming.tables.journals import Journal, stable
from tests.streaming.tables.signs import leave_silent_sign
from tests.streaming.views.story import SECOND, json_of, rebalance, run, store


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


@pytest.fixture
def two_rebalances(tmp_path: Path) -> Path:
    """Write two rebalances of the group orders."""
    history = Journal()
    rows = [rebalance("r1", 0, "group_created", None), rebalance("r2", 10_000, "member_joined", "b")]
    changes = [history.change(number, stable(number, number), group="orders") for number in (1, 2)]
    store(tmp_path, rows, changes)
    return tmp_path


def test_the_last_rebalance_of_a_group_needs_no_id(two_rebalances: Path) -> None:
    found = run(two_rebalances, "explain", "--group", "orders", "--last")
    assert found.stdout.startswith("Rebalance r2\n")
    assert (found.stdout, found.stderr) == (run(two_rebalances, "explain", "r2").stdout, "")
    assert "there is no group absent" in run(two_rebalances, "explain", "-g", "absent", "--last").stderr


def test_a_last_rebalance_of_a_blind_cluster_is_the_last_that_is_known(two_rebalances: Path) -> None:
    leave_silent_sign(two_rebalances, "c1", known_until=1_767_225_600_000)
    found = run(two_rebalances, "explain", "--group", "orders", "--last")
    assert found.stderr.startswith("c1 is blind since 2026-01-01T00:00:00Z:")
    assert found.stdout.startswith("Rebalance r2\n")
    assert run(two_rebalances, "explain", "r2").stderr == ""


@pytest.mark.parametrize("arguments", [(), ("--last",), ("-g", "g"), (SECOND, "--last"), (SECOND, "-g", "g", "--last")])
def test_explain_takes_an_id_or_a_group_and_last(tables: Path, arguments: tuple[str, ...]) -> None:
    refused = run(tables, "explain", *arguments)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "--group GROUP --last" in refused.stderr
