"""Dashboard: how much of its budget for a day each group has used, as metrics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric

from dashboard.metrics.group_labels import GroupLabels
from dashboard.reading.budget_use import BudgetUse
from dashboard.reading.objectives import BUDGET

_LABELS = ("objective", "cluster", "group")


def of_budgets(uses: Sequence[BudgetUse], budget_s: float, groups: GroupLabels, prefix: str) -> Iterable[Metric]:
    """Yield the budget, and what is used and left of it; of `other` that of the group that used most.

    Args:
        budget_s: 0 if there is none; then nothing has a sample.
    """
    least: dict[tuple[str, str], float] = {}
    most: dict[tuple[str, str], float] = {}
    for use in uses if budget_s else ():
        key = groups.of(use.cluster, use.group_id)
        least[key] = max(least.get(key, 0.0), use.least_ms / 1_000)
        most[key] = max(most.get(key, 0.0), float("inf") if use.most_ms is None else use.most_ms / 1_000)
    bounded = {key: used for key, used in most.items() if used != float("inf")}
    budget = GaugeMetricFamily(f"{prefix}budget_seconds", "What a group may use in a day.", labels=("objective",))
    if budget_s:
        budget.add_metric((BUDGET,), budget_s)
    yield budget
    ratio = {key: used / budget_s for key, used in bounded.items()}
    yield _by_group(f"{prefix}budget_used_ratio", "Used share of the budget; none where nothing bounds it.", ratio)
    ratio = {key: used / budget_s for key, used in least.items()}
    yield _by_group(f"{prefix}budget_used_min_ratio", "Used share of the budget, at least.", ratio)
    left = {key: max(0.0, budget_s - used) for key, used in bounded.items()}
    yield _by_group(f"{prefix}budget_left_seconds", "What is left of the budget; none where nothing bounds it.", left)


def _by_group(name: str, text: str, values: dict[tuple[str, str], float]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=_LABELS)
    for key in sorted(values):
        family.add_metric((BUDGET, *key), values[key])
    return family
