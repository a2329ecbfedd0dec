"""Dashboard: pages of advice, of all groups and of one, and of replays."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from dashboard.pages import page_columns
from dashboard.pages.listing_page import Choice, listing_page
from dashboard.pages.page_addresses import API, address
from dashboard.pages.page_routes import NO_RANGE, check_parameters, cluster_choice, page
from dashboard.pages.policy_panels import panels_of_group, panels_of_run
from dashboard.reading.listed_advice import advice_runs
from dashboard.reading.listing import VALUES
from dashboard.reading.listings import ADVICE
from dashboard.reading.questions import Reading
from dashboard.reading.replay_runs import replay_runs, run_sums
from dashboard.reading.requested_advice import DAYS, MOST_DAYS, requested_advice
from dashboard.reading.time_range import TimeRange
from streaming.machine.clock import now_ms
from streaming.terminal.format import time_text
from udfs.model.config import CoreConfig

router = APIRouter(include_in_schema=False, dependencies=[Depends(check_parameters)])


@router.get("/advice")
def advice(request: Request, days: Annotated[int, Query(ge=1, le=MOST_DAYS)] = DAYS) -> Response:
    """Show which change of configuration would have saved each group most, or, with a group, all that would have."""
    group, cluster = (request.query_params.get(name) or "" for name in ("group_id", "cluster"))
    if group:
        core = request.app.state.core
        return page(
            request, "advice_group.html", lambda reading, _: NO_RANGE | _group(reading, core, cluster, group, days)
        )

    def compute(reading: Reading, _: TimeRange) -> dict[str, Any]:
        choices = [
            cluster_choice(reading),
            Choice("result", "Advice", VALUES["result"], "any result"),
            Choice("sure", "How sure", VALUES["sure"], "however sure"),
        ]
        parameters = {name: value for name, value in request.query_params.items() if name != "days"}
        found = listing_page(reading, ADVICE, page_columns.ADVICE, "/advice", parameters, choices)
        runs = advice_runs(reading)
        for run in runs:
            run["age_ms"] = now_ms() - run["started_at"]
        return NO_RANGE | found | {"runs": runs}

    return page(request, "advice.html", compute)


def _group(reading: Reading, core: CoreConfig, cluster: str, group: str, days: int) -> dict[str, Any]:
    from streaming.history.advice_texts import entry_lines, heading, no_advice_text

    found = requested_advice(reading, core, cluster or None, group, days)
    status = reading.freshness.of(found.cluster)
    advised = found.advice
    where = {"cluster": found.cluster, "group_id": group}
    return {
        "cluster": found.cluster,
        "group": group,
        "days": days,
        "computed_at": found.computed_at,
        "refused": found.refused,
        "run": found.run,
        "blind_text": status.text if status.state in ("unknown", "partly_known") else "",
        "heading": "" if advised is None else heading(advised, days if found.run is None else None),
        "reason": "" if advised is None or advised.recorded["rebalances"] is None else no_advice_text(advised),
        "entries": [(each, list(entry_lines(each))) for each in (advised.advice if advised is not None else ())],
        "panels": panels_of_group(found.figures),
        "data": address(f"{API}group-advice", where, days=days),
    }


@router.get("/replays")
def replays(request: Request, id: str = "") -> Response:  # noqa: A002 - the parameter's name
    """Show what replays of many groups came to: the newest, or one of them."""

    def compute(reading: Reading, _: TimeRange) -> dict[str, Any]:
        runs = replay_runs(reading, id)
        chosen = runs[0] if id or runs else None
        return NO_RANGE | {
            "id": id,
            "run": chosen,
            "runs": replay_runs(reading, "")[:100],
            "panels": [] if chosen is None else panels_of_run(run_sums(reading, chosen)),
            "recorded": next((row for row in (chosen or {}).get("sums") or () if row["policy"] is None), None),
            "asked": "" if chosen is None else _asked(chosen),
        }

    return page(request, "replays.html", compute)


def _asked(run: dict[str, Any]) -> str:
    groups = f"groups {', '.join(run['groups_asked'][:5])}" if run["groups_asked"] else "all groups"
    where = f" of {run['cluster']}" if run["cluster"] else ""
    since = f", since {time_text(run['covers_from'])}" if run["covers_from"] is not None else ""
    until = f", until {time_text(run['covers_to'])}" if run["covers_to"] is not None else ""
    return f"{groups}{where}{since}{until}"
