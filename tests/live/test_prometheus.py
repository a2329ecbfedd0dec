"""A real Prometheus scrapes the server; its rules fire and resolve on a planted storm; an Alertmanager gets that."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from dashboard.server import DashboardServer
from streaming.alerts import service
from streaming.machine.clock import now_ms
from streaming.settings.model import load
from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.materializer import Materializer
from streaming.tables.schema import CHANGES, REBALANCES, Row
from streaming.tables.writer import Mark
from tests.dashboard.hostile import HOSTILE
from tests.kit.monitoring import Service, alertmanager, program, prometheus
from tests.kit.processes import wait_until
from tests.streaming.tables.journals import Journal, rows
from tests.streaming.tables.signs import leave_living_sign
from tests.test_grafana import DASHBOARDS, queries
from udfs.model.journal import FindingClosed, FindingOpened

pytestmark = pytest.mark.broker

RULES = Path(__file__).parents[2] / "conf" / "prometheus"


class PlantedTables:
    """Tables to which rebalances and findings of this moment are added, as the job adds them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._batch = 0
        self._journal = Journal()
        self.rebalance("calm")
        leave_living_sign(root, "c")

    def _mark(self) -> Mark:
        self._batch += 1
        return Mark("planted", self._batch)

    def rebalance(self, *groups: str) -> None:
        planted: list[Row] = [
            {
                "rebalance_id": f"{self._batch}-{number}",
                "cluster": "c",
                "system": "kafka",
                "group_id": group,
                "event_time": now_ms(),
                "detected_at": now_ms(),
                "trigger": "member_left",
                "status": "completed",
                "queues_moved": 1,
            }
            for number, group in enumerate(groups)
        ]
        DeltaRsTable(self.root, REBALANCES).append(to_arrow(REBALANCES, planted), self._mark())

    def finding(self, name: str, *, is_open: bool) -> None:
        at = now_ms()
        body: FindingOpened | FindingClosed = FindingClosed(finding_id=name, closed_at=at)
        if is_open:
            body = FindingOpened(
                finding_id=name,
                finding="strategies_differ",
                severity="critical",
                message="Members use different strategies.",
                advice="Configure one.",
                evidence=[],
                opened_at=at,
            )
        change = self._journal.change(0, body, group="calm", cluster="c")
        DeltaRsTable(self.root, CHANGES).append(to_arrow(CHANGES, rows([change])), self._mark())
        Materializer(self.root, 0).run()


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> PlantedTables:
    return PlantedTables(tmp_path_factory.mktemp("planted"))


@pytest.fixture(scope="module")
def server(planted: PlantedTables) -> Iterator[DashboardServer]:
    settings = load(overrides={"dashboard.port": 0, "dashboard.poll_interval_ms": 100})
    with DashboardServer(planted.root, settings.dashboard, metrics=settings.metrics).in_background() as running:
        yield running


@pytest.fixture(scope="module")
def manager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with alertmanager(tmp_path_factory.mktemp("alertmanager")) as running:
        yield running


@pytest.fixture(scope="module")
def scraper(tmp_path_factory: pytest.TempPathFactory, server: DashboardServer, manager: Service) -> Iterator[Service]:
    """Start Prometheus with the project's rules, sixty times as fast: minutes become seconds."""
    folder = tmp_path_factory.mktemp("prometheus")
    for name in ("recording.yml", "alerts.yml"):
        text = (RULES / name).read_text(encoding="utf-8")
        fast = re.sub(r"(?<=[\[ ])(\d+)m\b", r"\1s", text).replace("[1d]", "[24m]").replace("* 300", "* 5")
        (folder / name).write_text(fast.replace("1m\n", "1s\n"), encoding="utf-8")
    configuration = f"""
global: {{scrape_interval: 250ms, scrape_timeout: 250ms, evaluation_interval: 250ms}}
rule_files: [recording.yml, alerts.yml]
alerting: {{alertmanagers: [{{static_configs: [{{targets: ["{manager.url.removeprefix("http://")}"]}}]}}]}}
scrape_configs:
  - job_name: rebalance-monitor
    static_configs: [{{targets: ["127.0.0.1:{server.port}"]}}]
"""
    with prometheus(folder, configuration) as running:
        yield running


def firing(scraper: Service, name: str) -> list[dict[str, Any]]:
    alerts = scraper.get("/api/v1/alerts")["data"]["alerts"]
    return [alert for alert in alerts if alert["labels"]["alertname"] == name and alert["state"] == "firing"]


def received(manager: Service, name: str) -> list[dict[str, Any]]:
    return [alert for alert in manager.get("/api/v2/alerts") if alert["labels"]["alertname"] == name]


def value(scraper: Service, query: str) -> float | None:
    found = scraper.get(f"/api/v1/query?query={query}")["data"]["result"]
    return float(found[0]["value"][1]) if found else None


def test_the_rules_are_valid_and_do_what_their_tests_expect() -> None:
    for arguments in (["check", "rules", "recording.yml", "alerts.yml"], ["test", "rules", "alerts_test.yml"]):
        done = subprocess.run(
            [program("promtool"), *arguments], cwd=RULES, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_it_is_scraped(scraper: Service) -> None:
    wait_until(lambda: value(scraper, 'up{job="rebalance-monitor"}') == 1, "the first scrape")
    wait_until(lambda: value(scraper, "sum(rebalance_monitor_rebalances_total)"), "the first rebalance")


def test_a_storm_fires_reaches_the_alertmanager_and_resolves(
    planted: PlantedTables, scraper: Service, manager: Service
) -> None:
    wait_until(lambda: value(scraper, "rebalance_monitor_rebalances_total"), "the first rebalance")
    assert firing(scraper, "RebalanceStorm") == []

    def storm() -> bool:
        planted.rebalance(*["calm"] * 20)
        return bool(firing(scraper, "RebalanceStorm"))

    wait_until(storm, "the alert to fire")
    wait_until(lambda: received(manager, "RebalanceStorm"), "the Alertmanager to have it")
    (alert,) = received(manager, "RebalanceStorm")
    assert alert["labels"] == {"alertname": "RebalanceStorm", "severity": "warning", "cluster": "c", "group": "calm"}
    assert "Group calm of c keeps rebalancing." in alert["annotations"]["summary"]
    wait_until(lambda: not firing(scraper, "RebalanceStorm"), "the alert to resolve after the storm")
    wait_until(lambda: not received(manager, "RebalanceStorm"), "the Alertmanager to drop it")


def test_a_critical_finding_fires_while_it_is_open(planted: PlantedTables, scraper: Service, manager: Service) -> None:
    planted.finding("f", is_open=True)
    wait_until(lambda: received(manager, "RebalanceCriticalFinding"), "the alert")
    (alert,) = received(manager, "RebalanceCriticalFinding")
    assert (alert["labels"]["group"], alert["labels"]["kind"]) == ("calm", "strategies_differ")
    planted.finding("f", is_open=False)
    wait_until(lambda: not received(manager, "RebalanceCriticalFinding"), "the alert to resolve")


def test_hostile_names_of_groups_are_scraped(planted: PlantedTables, scraper: Service) -> None:
    names = sorted(set(HOSTILE))
    planted.rebalance(*names)
    count = "count(rebalance_monitor_rebalances_total)"
    wait_until(lambda: value(scraper, count) == len(names) + 1, "a series for each name")
    assert value(scraper, "up") == 1


def test_every_query_of_the_dashboards_is_answered(scraper: Service) -> None:
    for path in DASHBOARDS:
        for query in queries(json.loads(path.read_text(encoding="utf-8"))):
            plain = query.replace("$cluster", ".*").replace("$group", ".*")
            assert scraper.get(f"/api/v1/query?{urlencode({'query': plain})}")["status"] == "success"


def test_the_monitors_own_alerts_reach_the_alertmanager_and_resolve(
    planted: PlantedTables, manager: Service, tmp_path: Path
) -> None:
    values = {"alertmanager_url": manager.url, "group_wait_ms": 0, "poll_interval_ms": 100, "cool_down_ms": 0}
    values["state_file"] = tmp_path / "alerts.json"
    settings = load(overrides={f"alerts.{name}": value for name, value in values.items()})
    planted.finding("own", is_open=True)
    with service.in_background(planted.root, settings.alerts, settings.widespread):
        wait_until(lambda: received(manager, "RebalanceFinding"), "the alert")
        (alert,) = received(manager, "RebalanceFinding")
        assert alert["labels"]["group"] == "calm"
        assert alert["annotations"]["summary"] == "critical: strategies_differ opened in calm (c)"
        planted.finding("own", is_open=False)
        wait_until(lambda: not received(manager, "RebalanceFinding"), "the alert to resolve")
