"""Open findings as problems: roots, the worst first, with their rebalances and culprits."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from dashboard.app import create_app
from dashboard.reading.problems import problems
from dashboard.reading.questions import Reading
from streaming.settings.model import Dashboard
from streaming.tables.schema import Row
from tests.browser.day_tables import MINUTE_MS, T0, rebalance, write_rows


def finding(name: str, severity: str, at: int, **more: object) -> Row:
    """Return an open finding of the group orders."""
    row: Row = {"finding_id": name, "cluster": "c", "group_id": "orders", "kind": name, "severity": severity}
    return row | {"message": f"{name} is wrong", "advice": f"mend {name}", "evidence": [], "opened_at": at} | more


@pytest.fixture
def troubled(tmp_path: Path) -> Path:
    write_rows(tmp_path, "groups", [{"cluster": "c", "group_id": "orders", "system": "kafka", "state": "stable"}])
    times = {"r0": T0 - 61 * MINUTE_MS, "r1": T0 - MINUTE_MS, "r2": T0}
    write_rows(tmp_path, "rebalances", [rebalance("c", "orders", name, at, "m") for name, at in times.items()])
    clients = [{"client": "a", "rebalances": 1}, {"client": "b", "rebalances": 5}]
    members = [{"member_id": "m1", "client": "b", "detail": ""}, {"member_id": "m2", "client": "z", "detail": "stuck"}]
    rows = [
        finding("subscriptions_differ", "warning", T0, clients=clients, members=members),
        finding("queues_unread", "critical", T0 + 1, caused_by="subscriptions_differ"),
        finding("strategy_failed", "critical", T0 - 2 * MINUTE_MS, caused_by="closed_long_ago"),
        finding("idle_members", "info", T0),
        finding("old", "critical", T0) | {"closed_at": T0 + 1},
    ]
    write_rows(tmp_path, "findings", rows)
    return tmp_path


def test_problems_are_roots_with_what_follows_from_them(troubled: Path, settings: Dashboard) -> None:
    found = problems(Reading.of(troubled, settings), None, 10)
    assert [(problem.finding["kind"], [row["kind"] for row in problem.follows]) for problem in found.worst] == [
        ("strategy_failed", []),
        ("subscriptions_differ", ["queues_unread"]),
    ]
    assert (found.counts, found.roots, found.info) == ({"critical": 2, "warning": 1}, 2, 1)


def test_a_problem_names_its_rebalance_and_its_culprits(troubled: Path, settings: Dashboard) -> None:
    failed, differ = problems(Reading.of(troubled, settings), None, 10).worst
    assert differ.rebalance is not None
    assert failed.rebalance is not None
    assert (differ.rebalance["rebalance_id"], differ.rebalance["is_same_time"]) == ("r2", True)
    assert (failed.rebalance["rebalance_id"], failed.rebalance["is_same_time"]) == ("r0", False)
    assert [(culprit.kind, culprit.name, culprit.text) for culprit in differ.culprits] == [
        ("client", "b", "caused 5"),
        ("client", "a", "caused 1"),
        ("member", "m2", "stuck"),
    ]


def test_the_first_page_says_what_is_wrong_and_leads_there(troubled: Path, settings: Dashboard) -> None:
    with TestClient(create_app(troubled, settings)) as client:
        text = client.get("/").text
    assert "2 critical and 1 warning are open, from 2 causes" in text
    shown = ["subscriptions_differ is wrong", "mend subscriptions_differ", "/rebalance?id=r2", "/client?client=b"]
    assert [part for part in shown if part not in text] == []
    assert "old is wrong" not in text


def test_nothing_wrong_is_said_as_well(client: TestClient) -> None:
    assert "No problem is open" in client.get("/?cluster=c2").text


def test_of_a_folder_without_tables_nothing_is_known(tmp_path: Path, settings: Dashboard) -> None:
    with TestClient(create_app(tmp_path, settings, must_exist=False)) as client:
        text = client.get("/").text.partition("<main")[2]
    assert "Nothing is known yet" in text
    claims = ("No problem is open", "0 groups", "0 rebalances")
    assert [claim for claim in claims if claim in text] == []
