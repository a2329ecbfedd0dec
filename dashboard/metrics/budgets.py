"""Dashboard: how much of its budget for a day each group has used, as metrics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from prometheus_client.core import GaugeMetricFamily, Metric

from dashboard.metrics.group_labels import GroupLabels
from dashboard.reading.objectives import BUDGET, DAY_MS, rebalances_between
from streaming.tables.arrow_rows import from_arrow_columns
from streaming.views.freshness import Freshness
from streaming.views.reader import Reader

_LABELS = ("objective", "cluster", "group")


class BudgetUse(NamedTuple):
    """What one group has used of its budget in the day that ends now, or where its recording ends.

    Attributes:
        least_ms: At least. most_ms: At most; None if nothing bounds it.
    """

    cluster: str
    group_id: str
    least_ms: int
    most_ms: int | None


def budget_uses(reader: Reader, freshness: Freshness, now_ms: int) -> list[BudgetUse]:
    """Return the use of each group whose cluster's present is known; of a partly known one there is no upper bound."""
    groups = reader.read("groups", columns=["cluster", "group_id"])
    columns = from_arrow_columns(groups, ("cluster", "group_id"))
    names: set[tuple[str, str]] = {*zip(*columns, strict=True)}
    ends, partly = dict[str, int](), set[str]()
    for cluster in {cluster for cluster, _ in names}:
        found = freshness.of(cluster)
        if found.state != "unknown":
            ends[cluster] = now_ms if found.state != "recording" else found.known_until or now_ms
            partly |= {cluster} if found.state == "partly_known" else set()
    least = {name: 0 for name in names if name[0] in ends}
    most, unbounded = dict(least), {name for name in least if name[0] in partly}
    if not least:
        return []
    until_ms = max(ends.values())
    for cluster, group, at, _, shortest, longest, unknown in rebalances_between(
        reader, min(ends.values()) - DAY_MS, until_ms, {}
    ):
        name = (cluster, group)
        if name in least and ends[cluster] - DAY_MS < at <= ends[cluster]:
            least[name] += shortest or 0
            most[name] += max(shortest or 0, longest or 0)
            unbounded |= {name} if unknown else set()
    return [
        BudgetUse(name[0], name[1], used, None if name in unbounded else most[name])
        for name, used in sorted(least.items())
    ]


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
