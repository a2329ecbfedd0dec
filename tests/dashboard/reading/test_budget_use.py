"""What a group has used of its budget of outages, for people: a table with the nearest cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.reading import budget_use
from dashboard.reading.budget_use import BudgetUse, ShownBudget, shown_budgets
from dashboard.reading.questions import Reading
from streaming.settings.model import Dashboard
from tests.streaming.commands.test_advise import write_savings
from tests.streaming.tables.signs import known, leave_sign, sign

GROUP = ("c1", "orders")


@pytest.mark.parametrize(
    ("least_ms", "most_ms", "shown"),
    [
        (0, 0, ShownBudget("0% used, 1 min 40 s left", "ok")),
        (25_000, 25_000, ShownBudget("25% used, 1 min 15 s left", "ok")),
        (25_000, 50_000, ShownBudget("25% to 50% used, 50.0 s left", "ok")),
        (25_000, 99_999, ShownBudget("25% to 100% used, 1 ms left", "ok")),
        (25_000, 100_000, ShownBudget("25% to 100% used", "warning")),
        (100_000, 100_000, ShownBudget("spent: 100% used", "critical")),
        (100_000, 150_000, ShownBudget("spent: at least 100% used", "critical")),
        # Without an upper bound nothing is known to be left.
        (25_000, None, ShownBudget("at least 25% used, what is left is unknown", "unknown")),
        (100_000, None, ShownBudget("spent: at least 100% used", "critical")),
    ],
)
def test_a_budget_is_shown(
    story_tables: Path,
    settings: Dashboard,
    monkeypatch: pytest.MonkeyPatch,
    least_ms: int,
    most_ms: int | None,
    shown: ShownBudget,
) -> None:
    monkeypatch.setattr(budget_use, "budget_uses", lambda *_: [BudgetUse(*GROUP, least_ms, most_ms)])
    assert shown_budgets(Reading.of(story_tables, settings), 100, [GROUP]) == {GROUP: shown}


def test_without_a_budget_there_is_nothing_to_show(story_tables: Path, settings: Dashboard) -> None:
    assert shown_budgets(Reading.of(story_tables, settings), 0, [GROUP]) == {}


def test_of_a_blind_cluster_it_is_unknown(tmp_path: Path, settings: Dashboard) -> None:
    write_savings(tmp_path)
    name = ("shop", "orders")
    assert shown_budgets(Reading.of(tmp_path, settings), 100, [name])[name].text == "0% used, 1 min 40 s left"
    leave_sign(tmp_path, sign(known("shop"), state="stopped"))
    assert shown_budgets(Reading.of(tmp_path, settings), 100, [name])[name] == ShownBudget("unknown", "unknown")
