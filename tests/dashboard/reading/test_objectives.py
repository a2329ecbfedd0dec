"""Objectives: what of the tables counts, and where the worst value is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dashboard.reading.objectives import OBJECTIVES, Evaluation, Figure, evaluate
from dashboard.reading.opened_tables import OpenedTables
from streaming.settings.model import Check, load
from streaming.tables.liveness import JobLiveness
from streaming.views.freshness import Now, evaluate_liveness
from tests.streaming.tables.journals import T0
from tests.streaming.tables.signs import known, sign
from tests.streaming.views.story import rebalance, store

WIDESPREAD = load().widespread


def objectives(**values: object) -> Check:
    return load(overrides={f"check.{name}": value for name, value in values.items()}).check


def evaluated(tables: Path, at_ms: int, **values: object) -> Evaluation:
    """Evaluate a recording that does not end before that time."""
    opened = OpenedTables(tables)
    recorded = [known(name, known_until=max(T0, at_ms)) for name in ("c1", "c2")]
    opened.freshness = evaluate_liveness([sign(*recorded)], Now(T0, 0, "this-boot"))
    return evaluate(opened, objectives(**values), WIDESPREAD, at_ms)


def test_each_objective_is_named_by_two_settings() -> None:
    names = {name.removesuffix("_warning").removesuffix("_critical") for name in Check.model_fields}
    assert names - {"window_ms", "ignored_findings", "blind_state"} == set(OBJECTIVES)


def test_the_worst_group_is_named_with_its_value(story_tables: Path) -> None:
    found = evaluated(story_tables, T0 + 80_000)
    figures = {figure.name: (figure.value, figure.cluster, figure.group_id) for figure in found.figures}
    assert figures == {
        "rebalances_per_hour": (3.0, "c1", "orders"),
        "queue_outage_s": (45.0, "c1", "orders"),
        "queue_outage_s_per_day": (45.0, "c1", "orders"),
        "source_delay_s": (3.0, "c1", None),
    }
    assert tuple(figures) == OBJECTIVES


def test_the_window_ends_at_the_time_and_does_not_include_its_beginning(story_tables: Path) -> None:
    def number(at_ms: int) -> float:
        return evaluated(story_tables, at_ms, window_ms=3_600_000).figures[0].value

    # At 0, 10 and 70 s.
    assert [number(T0 + at) for at in (-1, 0, 9_999, 10_000, 70_000)] == [0, 1, 1, 2, 3]
    assert [number(T0 + 3_600_000 + at) for at in (-1, 0, 10_000, 70_000)] == [3, 2, 1, 0]


def test_the_day_of_a_budget_does_not_depend_on_the_window(story_tables: Path) -> None:
    def outages(at_ms: int) -> list[float]:
        found = evaluated(story_tables, at_ms, window_ms=1_000).figures
        return [figure.value for figure in found if figure.name.startswith("queue_outage_s")]

    day = 86_400_000
    assert outages(T0 + 80_000) == [0.0, 45.0]
    assert outages(T0 + 70_000 + day - 1)[1] > 0
    assert outages(T0 + 70_000 + day) == [0.0, 0.0]


def test_findings_count_from_opening_to_closing(story_tables: Path) -> None:
    def kinds(at_ms: int) -> list[tuple[str, str]]:
        return [*evaluated(story_tables, at_ms).kinds]

    assert kinds(T0 + 69_999) == []
    assert kinds(T0 + 70_000) == [("warning", "expected_differs")]
    assert evaluated(story_tables, T0).state == "ok"
    assert evaluated(story_tables, T0 + 70_000, ignored_findings=["expected_differs"]).findings == []


@pytest.mark.parametrize(
    ("value", "warning", "critical", "state"),
    [
        (0.0, 0, 0, "ok"),
        (9.9, 10, 20, "ok"),
        (10.0, 10, 20, "warning"),
        (20.0, 10, 20, "critical"),
        (20.0, 10, 0, "warning"),
        (20.0, 0, 20, "critical"),
        (15.0, 20, 10, "critical"),
    ],
)
def test_a_limit_is_missed_from_its_value_on(value: float, warning: float, critical: float, state: str) -> None:
    assert Figure("x", value, warning, critical).state == state


NOW = Now(T0 + 100_000, 0, "this-boot")
DEAD = sign(known("c1", known_until=T0 + 60_000, is_live=True), state="running", written_at=T0 + 62_000)


def evaluated_with(tables: Path, *jobs: JobLiveness, is_present: bool = False, **values: object) -> Evaluation:
    """Evaluate with these signs, of all clusters but c2 a live one, 100 s after the story began."""
    whole = [*jobs, sign(known("c2", known_until=NOW.wall_ms), app_id="recorded")]
    opened = OpenedTables(tables)
    opened.freshness = evaluate_liveness(whole, NOW)
    return evaluate(opened, objectives(**values), WIDESPREAD, None if is_present else NOW.wall_ms)


def test_findings_open_when_a_cluster_was_last_known_say_nothing_of_it_now(story_tables: Path) -> None:
    found = evaluated_with(story_tables, DEAD)
    assert (found.state, [cluster.cluster for cluster in found.blind]) == ("unknown", ["c1"])
    assert found.kinds == {("warning", "expected_differs"): 1}
    assert evaluated_with(story_tables, DEAD, blind_state="critical").state == "critical"


def test_events_dated_later_than_now_are_no_knowledge_of_the_present(story_tables: Path) -> None:
    ahead = sign(known("c1", known_until=NOW.wall_ms + 60_000, is_live=True), state="running", written_at=T0 + 62_000)
    assert not evaluated_with(story_tables, ahead).blind, "at that time as it was asked for"
    assert [cluster.cluster for cluster in evaluated_with(story_tables, ahead, is_present=True).blind] == ["c1"]


def test_a_cluster_without_a_sign_of_life_is_unknown(story_tables: Path) -> None:
    assert [cluster.text for cluster in evaluated_with(story_tables).blind] == [
        "blind: no job has reported it beside these tables"
    ]


def test_tables_without_a_cluster_are_unknown_and_why(tmp_path: Path) -> None:
    store(tmp_path, [])
    opened = OpenedTables(tmp_path)
    opened.freshness = evaluate_liveness([sign(state="starting")], replace(NOW, wall_ms=T0))
    found = evaluate(opened, objectives(), WIDESPREAD, T0)
    assert (found.state, [cluster.reason for cluster in found.blind]) == ("unknown", ["the job starts"])


def test_an_outage_without_an_upper_bound_meets_no_objective(tmp_path: Path) -> None:
    lost = {"outage_queues": 200, "outage_unknown_queues": 200}
    store(tmp_path, [rebalance("r1", 0, "member_left", None, **lost)])
    found = evaluated(tmp_path, T0 + 1_000, queue_outage_s_warning=10)
    outage, of_day = [figure for figure in found.figures if figure.name.startswith("queue_outage_s")]
    assert (of_day.state, of_day.is_budget) == ("ok", False), "no limit is set for it"
    assert (outage.state, outage.value, outage.group_id, outage.unknown_queues) == ("unknown", 0.0, "orders", 200)
    assert found.state == "unknown"
    assert evaluated(tmp_path, T0 + 1_000).state == "ok", "no limit is set for it"


def test_without_an_objective_the_figure_is_the_largest_although_another_one_is_not_known(tmp_path: Path) -> None:
    lost = {"outage_queues": 9, "outage_unknown_queues": 9}
    long = {"outage_min_ms": 30_000, "outage_max_ms": 40_000, "outage_queues": 1, "outage_unknown_queues": 0}
    rows = [rebalance("r1", 0, "member_left", None, **lost), rebalance("r2", 0, "member_left", None, **long)]
    store(tmp_path, [rows[0], rows[1] | {"group_id": "payments"}])
    outage = next(figure for figure in evaluated(tmp_path, T0 + 1_000).figures if figure.name == "queue_outage_s")
    assert (outage.value, outage.group_id, outage.unknown_queues) == (40.0, "payments", 0)


def test_a_lower_bound_alone_can_miss_an_objective(tmp_path: Path) -> None:
    partly = {"outage_min_ms": 30_000, "outage_queues": 2, "outage_unknown_queues": 1}
    store(tmp_path, [rebalance("r1", 0, "member_left", None, **partly)])
    assert evaluated(tmp_path, T0 + 1_000, queue_outage_s_warning=10).state == "warning"


def test_the_present_of_a_recording_is_its_end(tmp_path: Path) -> None:
    store(tmp_path, [rebalance("r1", 0, "member_joined", None), rebalance("r2", 10_000, "member_left", None)])
    opened = OpenedTables(tmp_path)
    opened.freshness = evaluate_liveness([sign(known("c1", known_until=T0 + 20_000), app_id="recorded")], NOW)
    found = evaluate(opened, objectives(rebalances_per_hour_warning=2), WIDESPREAD, None)
    assert [cluster.state for cluster in found.recordings] == ["recording"]
    assert (found.figures[0].value, found.state) == (2.0, "warning")


def test_a_blind_cluster_does_not_hide_what_another_one_misses(tmp_path: Path) -> None:
    rows = [rebalance(f"r{number}", number, "member_joined", None) for number in range(1, 4)]
    rows += [row | {"rebalance_id": f"s{row['rebalance_id']}", "cluster": "c2"} for row in rows[:2]]
    store(tmp_path, rows)
    found = evaluated_with(tmp_path, DEAD, rebalances_per_hour_critical=2)
    assert [cluster.cluster for cluster in found.blind] == ["c1"]
    assert (found.figures[0].cluster, found.figures[0].value, found.state) == ("c2", 2.0, "critical")
