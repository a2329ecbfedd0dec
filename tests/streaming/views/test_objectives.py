"""Objectives: what of the tables counts, and where the worst value is."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.settings.model import Check, load
from streaming.views.objectives import OBJECTIVES, Figure, evaluate, last_commit_ms
from streaming.views.reader import Reader
from tests.streaming.tables.journals import T0

WIDESPREAD = load().widespread


def objectives(**values: object) -> Check:
    return load(overrides={f"check.{name}": value for name, value in values.items()}).check


def test_each_objective_is_named_by_two_settings() -> None:
    names = {name.removesuffix("_warning").removesuffix("_critical") for name in Check.model_fields}
    assert names - {"window_ms", "ignored_findings"} == set(OBJECTIVES)


def test_the_worst_group_is_named_with_its_value(tables: Path) -> None:
    found = evaluate(Reader(tables), objectives(), WIDESPREAD, T0 + 80_000)
    figures = {one.name: (one.value, one.cluster, one.group_id) for one in found.figures}
    assert figures == {
        "rebalances_per_hour": (3.0, "c1", "orders"),
        "queue_pause_s": (45.0, "c1", "orders"),
        "source_delay_s": (3.0, "c1", None),
        "table_age_s": (None, None, None),
    }
    assert tuple(figures) == OBJECTIVES


def test_the_window_ends_at_the_time_and_does_not_include_its_beginning(tables: Path) -> None:
    def number(at_ms: int) -> float | None:
        return evaluate(Reader(tables), objectives(window_ms=3_600_000), WIDESPREAD, at_ms).figures[0].value

    # At 0, 10 and 70 s.
    assert [number(T0 + at) for at in (-1, 0, 9_999, 10_000, 70_000)] == [0, 1, 1, 2, 3]
    assert [number(T0 + 3_600_000 + at) for at in (-1, 0, 10_000, 70_000)] == [3, 2, 1, 0]


def test_findings_count_from_opening_to_closing(tables: Path) -> None:
    def kinds(at_ms: int) -> list[tuple[str, str]]:
        return [*evaluate(Reader(tables), objectives(), WIDESPREAD, at_ms).kinds]

    assert kinds(T0 + 69_999) == []
    assert kinds(T0 + 70_000) == [("warning", "expected_differs")]
    assert (
        evaluate(Reader(tables), objectives(ignored_findings=["expected_differs"]), WIDESPREAD, T0 + 70_000).state
        == "ok"
    )


@pytest.mark.parametrize(
    ("value", "warning", "critical", "state"),
    [
        (None, 1, 1, "ok"),
        (0.0, 0, 0, "ok"),
        (9.9, 10, 20, "ok"),
        (10.0, 10, 20, "warning"),
        (20.0, 10, 20, "critical"),
        (20.0, 10, 0, "warning"),
        (20.0, 0, 20, "critical"),
        (15.0, 20, 10, "critical"),
    ],
)
def test_a_limit_is_missed_from_its_value_on(value: float | None, warning: float, critical: float, state: str) -> None:
    assert Figure("x", value, warning, critical).state == state


def test_the_last_commit_is_the_newest_of_all_tables(tables: Path, tmp_path: Path) -> None:
    from streaming.machine.clock import now_ms

    found = last_commit_ms(tables)
    assert found is not None
    assert T0 < found <= now_ms()
    assert last_commit_ms(tmp_path) is None
