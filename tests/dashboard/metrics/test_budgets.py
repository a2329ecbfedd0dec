"""Metrics of budgets: what groups have used in a day, where that is known."""

from __future__ import annotations

from pathlib import Path

from starlette.testclient import TestClient

from dashboard.app import create_app
from dashboard.mcp.source import ToolSettings
from dashboard.metrics.budgets import of_budgets
from dashboard.metrics.group_labels import GroupLabels
from dashboard.reading.budget_use import BudgetUse, budget_uses
from streaming.settings.model import load
from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.schema import REBALANCES
from streaming.tables.writer import Mark
from streaming.views.freshness import Freshness, Now, evaluate_liveness
from streaming.views.reader import Reader
from tests.dashboard.metrics.test_group_labels import metrics
from tests.streaming.tables.journals import T0
from tests.streaming.tables.signs import known, leave_recording_sign, sign
from tests.streaming.views.story import rebalance, write_story

DAY = 86_400_000
NAME = "queue_outage_s_per_day"


def samples(uses: list[BudgetUse], budget_s: float, most: int = 10) -> dict[str, dict[tuple[str, ...], float]]:
    named = [(use.cluster, use.group_id) for use in uses]
    labels = GroupLabels(named, [cluster for cluster, _ in named], metrics(max_groups=most))
    return {
        family.name: {tuple(sample.labels.values()): sample.value for sample in family.samples}
        for family in of_budgets(uses, budget_s, labels, "")
    }


def recordings(**ends: int) -> Freshness:
    signs = [sign(*(known(cluster, known_until=T0 + end) for cluster, end in ends.items()))]
    return evaluate_liveness(signs, Now(T0 + DAY, 0, "this-boot"))


def used(tables: Path, freshness: Freshness) -> dict[tuple[str, str], tuple[int, int | None]]:
    found = budget_uses(Reader(tables), freshness, T0 + DAY)
    return {(use.cluster, use.group_id): (use.least_ms, use.most_ms) for use in found}


def test_a_group_has_used_the_outages_of_the_day_that_ends_with_its_knowledge(tmp_path: Path) -> None:
    write_story(tmp_path)
    at_end = used(tmp_path, recordings(c1=80_000, c2=80_000))
    assert at_end["c1", "orders"][1] == 45_000, "as `check` has it"
    assert at_end["c1", "twin"] == (0, 0), "a group without an outage has used nothing, which is known"
    # The last rebalance was at 70 s; the day begins after it.
    assert used(tmp_path, recordings(c1=70_000 + DAY, c2=80_000))["c1", "orders"] == (0, 0)


def test_a_group_of_an_unknown_cluster_has_no_sample(tmp_path: Path) -> None:
    write_story(tmp_path)
    found = used(tmp_path, recordings(c2=80_000))
    assert {cluster for cluster, _ in found} == {"c2"}
    assert used(tmp_path, Freshness()) == {}


def test_what_has_no_upper_bound_is_known_at_least() -> None:
    uses = [BudgetUse("c", "a", 30_000, 90_000), BudgetUse("c", "b", 60_000, None)]
    assert samples(uses, 120) == {
        "budget_seconds": {(NAME,): 120},
        "budget_used_ratio": {(NAME, "c", "a"): 0.75},
        "budget_used_min_ratio": {(NAME, "c", "a"): 0.25, (NAME, "c", "b"): 0.5},
        "budget_left_seconds": {(NAME, "c", "a"): 30},
    }
    assert not any(samples(uses, 0).values()), "there is no budget"


def test_they_are_served_where_a_budget_is_set(tmp_path: Path) -> None:
    write_story(tmp_path)
    leave_recording_sign(tmp_path, ["c1", "c2"], {"c1": T0 + 80_000, "c2": T0 + 80_000})
    given = load(overrides={"dashboard.allowed_hosts": ["testserver"], f"check.{NAME}_critical": 90})
    with TestClient(create_app(tmp_path, given.dashboard, tools=ToolSettings.of(given))) as client:
        text = client.get("/metrics").text
    labels = f'{{cluster="c1",group="orders",objective="{NAME}"}}'
    assert f"rebalance_monitor_budget_used_ratio{labels} 0.5" in text
    with TestClient(create_app(tmp_path, given.dashboard)) as client:
        assert "rebalance_monitor_budget_used_ratio{" not in client.get("/metrics").text


def test_in_a_sum_the_group_that_used_most_counts() -> None:
    uses = [BudgetUse("c", name, used, used) for name, used in (("a", 1_000), ("b", 150_000), ("d", 60_000))]
    found = samples(uses, 120, most=1)
    assert found["budget_used_ratio"] == {(NAME, "c", "a"): 1 / 120, (NAME, "c", "other"): 1.25}
    assert found["budget_left_seconds"][NAME, "c", "other"] == 0


def test_a_queue_without_an_end_leaves_a_group_without_an_upper_bound(tmp_path: Path) -> None:
    write_story(tmp_path)
    partly = {"outage_min_ms": 30_000, "outage_queues": 2, "outage_unknown_queues": 1}
    last = to_arrow(REBALANCES, [rebalance("r9", 75_000, "member_left", None, **partly)])
    DeltaRsTable(tmp_path, REBALANCES).append(last, Mark("job", 1))
    assert used(tmp_path, recordings(c1=80_000, c2=80_000))["c1", "orders"][1] is None
