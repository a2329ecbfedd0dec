"""`/metrics`, `/healthz`, `/readyz` as Prometheus and orchestrators call them."""

from __future__ import annotations

import json
from pathlib import Path
from unittest.mock import Mock

import pytest
from fastapi.testclient import TestClient
from prometheus_client import parser as text
from prometheus_client.openmetrics import parser as openmetrics

from dashboard.app import create_app
from dashboard.metrics import router
from streaming.alerts.follower import AlertsStatus
from streaming.settings.model import Dashboard, load
from tests.dashboard.hostile import HOSTILE
from tests.streaming.views.story import rebalance, store

NAMES = sorted(set(HOSTILE))
# The Accept header of Prometheus 2.42.
ACCEPT = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;q=0.5"


def test_openmetrics_where_it_is_accepted_and_text_elsewhere(client: TestClient) -> None:
    answer = client.get("/metrics", headers={"accept": ACCEPT})
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert answer.text.endswith("# EOF\n")
    families = {family.name: family for family in openmetrics.text_string_to_metric_families(answer.text)}
    older = client.get("/metrics")
    assert older.headers["content-type"].startswith("text/plain")
    assert {family.name for family in text.text_string_to_metric_families(older.text)} == set(families)
    assert sum(sample.value for sample in families["rebalance_monitor_rebalances"].samples) == 3


def test_it_is_computed_once_for_a_version_of_the_tables(
    story_tables: Path, settings: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed = Mock(wraps=router.families)
    monkeypatch.setattr(router, "families", computed)
    with TestClient(create_app(story_tables, settings)) as client:
        assert client.get("/metrics").content == client.get("/metrics").content
    computed.assert_called_once()


def test_a_server_that_started_again_gives_the_same_counters(story_tables: Path, settings: Dashboard) -> None:
    answers = []
    for _ in range(2):
        with TestClient(create_app(story_tables, settings)) as client:
            answers.append(client.get("/metrics", headers={"accept": ACCEPT}).text)
    assert answers[0] == answers[1]


def test_it_is_ready_once_there_are_tables(tmp_path: Path, settings: Dashboard) -> None:
    app = create_app(tmp_path, settings, must_exist=False)
    with TestClient(app) as client:
        assert client.get("/healthz").status_code == 200
        assert client.get("/readyz").status_code == 503
        store(tmp_path, [rebalance("aa11", 0, "group_created", None)])
        app._app.state.reading.tables.refresh()
        assert client.get("/readyz").status_code == 200


def test_metrics_need_the_token_and_health_does_not(story_tables: Path) -> None:
    token = "t" * 20
    settings = load(overrides={"dashboard.token": token, "dashboard.allowed_hosts": ["testserver"]}).dashboard
    with TestClient(create_app(story_tables, settings)) as client:
        assert client.get("/metrics").status_code == 401
        assert client.get("/metrics", headers={"authorization": f"Bearer {token}"}).status_code == 200
        assert client.get("/healthz").status_code == client.get("/readyz").status_code == 200


def test_alerts_that_do_not_run_are_shown(story_tables: Path, settings: Dashboard) -> None:
    alerts = AlertsStatus()
    with TestClient(create_app(story_tables, settings, alerts=alerts)) as client:
        shown = []
        for alerts.is_running in (None, True, False):
            lines = client.get("/metrics").text.splitlines()
            shown.append([line for line in lines if line.startswith("rebalance_monitor_alerts_running")])
    assert shown == [[], ["rebalance_monitor_alerts_running 1.0"], ["rebalance_monitor_alerts_running 0.0"]]


def test_hostile_ids_are_values_of_labels_and_nothing_else(tmp_path: Path, settings: Dashboard) -> None:
    rows = [
        {**rebalance(f"{number:04}", number, "group_created", None), "group_id": name, "cluster": name}
        for number, name in enumerate(NAMES)
    ]
    store(tmp_path, rows)
    metrics = load(overrides={"metrics.max_clusters": 1_000, "metrics.max_groups": 1_000}).metrics
    with TestClient(create_app(tmp_path, settings, metrics=metrics)) as client:
        answer = client.get("/metrics", headers={"accept": ACCEPT})
    (family,) = [
        family
        for family in openmetrics.text_string_to_metric_families(answer.text)
        if family.name == "rebalance_monitor_rebalances"
    ]
    assert len(family.samples) == len(NAMES)
    assert all(sample.value == 1 for sample in family.samples)
    assert len({json.dumps(sample.labels) for sample in family.samples}) == len(NAMES)
    assert all(line.isprintable() for line in answer.text.split("\n"))
    assert max(map(len, answer.text.split("\n"))) < 500
