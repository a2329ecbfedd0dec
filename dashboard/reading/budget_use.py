"""Dashboard: how much of its budget of outages each group has used in the last day."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from dashboard.reading.objectives import DAY_MS, rebalances_between
from dashboard.reading.questions import Reading
from streaming.machine.clock import now_ms
from streaming.tables.arrow_rows import from_arrow_columns
from streaming.terminal.format import span_of_time
from streaming.views.freshness import Freshness
from streaming.views.reader import Reader


class BudgetUse(NamedTuple):
    """What one group has used of its budget in the day that ends now, or where its recording ends.

    Attributes:
        least_ms: At least. most_ms: At most; None if nothing bounds it.
    """

    cluster: str
    group_id: str
    least_ms: int
    most_ms: int | None


def budget_uses(
    reader: Reader, freshness: Freshness, now_ms: int, where: Mapping[str, Any] | None = None
) -> list[BudgetUse]:
    """Return the use of each group whose cluster's present is known; of a partly known one there is no upper bound.

    Args:
        where: Only these groups, by conditions on cluster and group_id; None for all.
    """
    groups = reader.read("groups", columns=["cluster", "group_id"], where=where)
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
        reader, min(ends.values()) - DAY_MS, until_ms, where or {}
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


class ShownBudget(NamedTuple):
    """How much of its budget a group has used, for people.

    Attributes:
        state: ``critical`` if it is spent for certain, ``warning`` if it may be, ``unknown`` or ``ok``.
    """

    text: str
    state: str


def shown_budgets(
    reading: Reading, budget_s: float, groups: Collection[tuple[str, str]]
) -> dict[tuple[str, str], ShownBudget]:
    """Return the budgets of some groups, by cluster and name; none if there is no budget.

    Args:
        budget_s: What a group may use in a day; 0 if there is none.
    """
    if not budget_s or not groups:
        return {}
    where = {"cluster": {cluster for cluster, _ in groups}, "group_id": {group for _, group in groups}}
    uses = budget_uses(reading.tables, reading.freshness, now_ms(), where)
    found = {(use.cluster, use.group_id): _shown(use, budget_s * 1_000) for use in uses}
    unknown = ShownBudget("unknown", "unknown")
    return {name: found.get(name, unknown) for name in groups}


def _shown(use: BudgetUse, budget_ms: float) -> ShownBudget:
    least, most = use.least_ms / budget_ms, None if use.most_ms is None else use.most_ms / budget_ms
    if least >= 1:
        return ShownBudget(f"spent: {'at least ' if most != least else ''}{least:,.0%} used", "critical")
    if most is None:
        return ShownBudget(f"at least {least:,.0%} used, what is left is unknown", "unknown")
    left = span_of_time(round(max(0.0, budget_ms - (use.most_ms or 0))))
    if most >= 1:
        return ShownBudget(f"{least:,.0%} to {most:,.0%} used", "warning")
    share = f"{most:,.0%}" if round(least, 2) == round(most, 2) else f"{least:,.0%} to {most:,.0%}"
    return ShownBudget(f"{share} used, {left} left", "ok")
