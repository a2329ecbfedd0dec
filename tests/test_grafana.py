"""Dashboards for Grafana: valid by Grafana's own schema, with fixed UIDs, and over metrics that there are."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboard.metrics.families import families
from dashboard.metrics.router import of_alerts
from streaming.pipeline.job_metrics import JobCollector
from streaming.settings.model import load
from streaming.terminal.live_view import ClusterStatus, LiveStatus
from streaming.views.freshness import Freshness
from tests.dashboard.metrics.test_families import GivenRows

CONF = Path(__file__).parents[1] / "conf"
DASHBOARDS = sorted((CONF / "grafana").glob("*.json"))
UIDS = {"overview": "rebalance-monitor-overview", "group": "rebalance-monitor-group"}


def queries(dashboard: dict[str, Any]) -> list[str]:
    return [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


def lost(given: object, kept: object, path: str = "") -> Iterator[str]:
    """Yield where a value is not the same any more."""
    if isinstance(given, dict) and isinstance(kept, dict):
        for key, value in given.items():
            yield from lost(value, kept.get(key), f"{path}.{key}")
    elif isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        for number, (given_part, kept_part) in enumerate(zip(given, kept, strict=True)):
            yield from lost(given_part, kept_part, f"{path}[{number}]")
    elif given != kept:
        yield f"{path}: {given!r}"


def test_the_uids_are_fixed() -> None:
    found = {path.stem: json.loads(path.read_text(encoding="utf-8"))["uid"] for path in DASHBOARDS}
    assert found == UIDS


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_grafanas_schema_has_every_field_and_value(path: Path) -> None:
    dashboard = json.loads(path.read_text(encoding="utf-8"))
    register_default_plugins()
    read = json.loads(JSONEncoder().encode(Dashboard.from_json(dashboard)))
    assert list(lost(dashboard, read)) == []
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all(panel["description"] for panel in panels)


def test_missing_columns_are_noticed() -> None:
    register_default_plugins()
    read = json.loads(JSONEncoder().encode(Dashboard.from_json({"title": "x", "titel": "y"})))
    assert list(lost({"title": "x", "titel": "y"}, read)) == [".titel: 'y'"]


def test_queries_and_rules_name_metrics_that_there_are() -> None:
    nothing: Any = GivenRows()
    status = LiveStatus(batch_ms=1, delay_ms=1, findings=1, clusters=(ClusterStatus("c", "kafka", 1, 1, 1),))
    given = families(nothing, load().metrics, freshness=Freshness())
    found = [*given, *JobCollector(status).collect(), *of_alerts(True)]
    there = {family.name + ("_total" if family.type == "counter" else "") for family in found}
    rules = [(CONF / "prometheus" / name).read_text(encoding="utf-8") for name in ("recording.yml", "alerts.yml")]
    recorded = set(re.findall(r"record: (\S+)", rules[0]))
    texts = [*rules, *(query for path in DASHBOARDS for query in queries(json.loads(path.read_text(encoding="utf-8"))))]
    named = {name for text in texts for name in re.findall(r"[a-z_:]*rebalance_monitor_[a-z_:0-9]+\w", text)}
    assert len(named) > 12
    assert sorted(named - there - recorded) == []


def test_the_wheel_has_them() -> None:
    project = tomllib.loads((CONF.parent / "pyproject.toml").read_text(encoding="utf-8"))
    assert "conf" in project["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
