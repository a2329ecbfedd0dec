"""Dashboard: the content of the first page: what is wrong now, the fleet over time, clusters and groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from dashboard.pages import page_columns
from dashboard.pages.listing_page import Choice, listing_page
from dashboard.pages.page_addresses import API, address
from dashboard.reading import listings
from dashboard.reading.activity import CONDITIONS, bins, fleet, groups_in
from dashboard.reading.budget_use import shown_budgets
from dashboard.reading.churn import BUSIEST, churn, churning
from dashboard.reading.cluster_rows import cluster_rows
from dashboard.reading.known_time import nothing_to_list
from dashboard.reading.listing import Listing
from dashboard.reading.listing_query import plain_rows
from dashboard.reading.problems import problems
from dashboard.reading.questions import Reading
from dashboard.reading.time_range import TimeRange
from streaming.tables.schema import Row
from streaming.terminal.format import counted

# At most so many problems are described; the page of findings has all of them.
PROBLEMS = 8
# At most so many bins of the fleet are in its table; its downloads have all.
FLEET_ROWS = 200
_FLEET_NUMBERS = ("rebalances", "outage_max_ms", "outage_min_ms", "unread_queues", "stalled_queues")


def overview_page(
    reading: Reading, span: TimeRange, parameters: Mapping[str, str], choices: Iterable[Choice], budget_s: float = 0
) -> dict[str, Any]:
    """Return what the first page shows of a range.

    Args:
        budget_s: The budget of outages of a group and day; 0 if there is none.

    Raises:
        BadQuestionError: The address requests something that does not exist.
    """
    found = listing_page(reading, listing_in(span), page_columns.GROUPS, "/", parameters, choices)
    cluster = found["chosen"].get("cluster")
    _add_bins(reading, found["rows"], span)
    budgets = shown_budgets(reading, budget_s, [(row["cluster"], row["group_id"]) for row in found["rows"]])
    for row in found["rows"]:
        row["budget"] = budgets.get((row["cluster"], row["group_id"]))
    wrong = problems(reading, cluster, PROBLEMS)
    strip = plain_rows(fleet(reading, span, cluster))
    eventful = [row for row in strip if any(row[name] != 0 for name in _FLEET_NUMBERS)][::-1]
    rebalancing = churning(reading, cluster=cluster, span=span)
    of_range = {"since": span.since_ms, "until": span.until_ms}
    return found | {
        "is_of_all_times": False,
        "wrong": wrong,
        "headline": headline_text(wrong.counts, wrong.roots),
        "clusters": cluster_rows(reading),
        "totals": _totals(reading, span, cluster),
        "busy": plain_rows(churn(reading, cluster=cluster, span=span)),
        "fleet": eventful[:FLEET_ROWS],
        "fleet_count": len(eventful),
        "busiest": min(BUSIEST, rebalancing),
        "churning": rebalancing,
        "churn": address(f"{API}churn", of_range, cluster=cluster, limit=BUSIEST),
        "fleet_data": address(f"{API}fleet", of_range, cluster=cluster),
        "nothing": _nothing(reading) if not found["rows"] else "",
    }


def listing_in(span: TimeRange) -> Listing:
    """Return the listing of groups with what they did in a range: the worst first, then those that rebalanced most."""
    ranked = f"coalesce(list_position({[*CONDITIONS]}, condition), {len(CONDITIONS) + 1})"
    return replace(
        listings.GROUPS,
        columns=(*listings.GROUPS.columns, "rebalances_range", "rebalances_earlier", "condition"),
        orders=dict(listings.GROUPS.orders)
        | {"health": ranked, "rebalances_range": "coalesce(rebalances_range, -1)"}
        | {"worst": f"{ranked}::bigint * 1000000000 - coalesce(rebalances_range, 0)"},
        default="worst",
        made=lambda reading: groups_in(reading, span),
    )


def headline_text(counts: Mapping[str, int], roots: int) -> str:
    """Return in one sentence how much is wrong.

    Example:
        >>> headline_text({"critical": 1, "warning": 3}, 2)
        '1 critical and 3 warnings are open, from 2 causes'
        >>> headline_text({"critical": 0, "warning": 1}, 1), headline_text({"critical": 0, "warning": 0}, 0)
        ('1 warning is open', 'No problem is open')
    """
    critical, warning = counts["critical"], counts["warning"]
    parts = [f"{critical:,} critical"] if critical else []
    parts += [counted(warning, "warning")] if warning else []
    if not parts:
        return "No problem is open"
    text = f"{' and '.join(parts)} {'is' if critical + warning == 1 else 'are'} open"
    return text if roots == critical + warning else f"{text}, from {counted(roots, 'cause')}"


def _nothing(reading: Reading) -> str:
    """Return why no group is listed, as a sentence."""
    text = nothing_to_list(reading)
    return f"{text[:1].upper()}{text[1:]}."


def _totals(reading: Reading, span: TimeRange, cluster: str | None) -> Row:
    sql = """
        select count(*) as groups, coalesce(sum(members), 0)::bigint as members,
            count(*) filter (health = 'critical') as critical, count(*) filter (health = 'warning') as warning,
            count(*) filter (condition = 'restless') as restless,
            count(*) filter (health = 'unknown') as unknown,
            coalesce(sum(open_findings), 0)::bigint as open_findings,
            case when bool_or(rebalances_range is null) then null else coalesce(sum(rebalances_range), 0)::bigint end
                as rebalances,
            case when bool_or(rebalances_earlier is null) then null
                else coalesce(sum(rebalances_earlier), 0)::bigint end as earlier,
            coalesce(sum(rebalances_range), 0)::bigint as rebalances_known
        from overview where ? is null or cluster = ?
    """
    (row,) = plain_rows(reading.sql(sql, {"overview": groups_in(reading, span)}, [cluster, cluster]))
    return row


def _add_bins(reading: Reading, rows: list[Row], span: TimeRange) -> None:
    """Add to rows of groups their rebalances in each bin of the range."""
    sql = "select cluster, group_id, hour, rebalances from bins where list_contains(?, group_id)"
    places = {at_ms: place for place, at_ms in enumerate(span.bins)}
    found: dict[tuple[str, str], list[int]] = {}
    names = sorted({row["group_id"] for row in rows}) or [""]
    for row in plain_rows(reading.sql(sql, {"bins": bins(reading, span)}, [names])):
        drawn = found.setdefault((row["cluster"], row["group_id"]), [0] * len(places))
        drawn[places[row["hour"]]] = row["rebalances"]
    for row in rows:
        row["bins"] = found.get((row["cluster"], row["group_id"]), [0] * len(places))
