"""Dashboard: the content of the page of one group."""

from __future__ import annotations

from typing import Any

from dashboard.pages.folded_episodes import folded
from dashboard.pages.page_addresses import API, address
from dashboard.pages.topic_page import lag_values
from dashboard.pages.what_if_form import form_of
from dashboard.reading.activity import UNREAD_KINDS, groups_in
from dashboard.reading.budget_use import shown_budgets
from dashboard.reading.churn import churn
from dashboard.reading.group_detail import group_detail
from dashboard.reading.group_timeline import timeline
from dashboard.reading.lag_history import lag_history
from dashboard.reading.listing_query import piece, plain_rows
from dashboard.reading.listings import ASSIGNMENTS, EPISODES, FINDINGS, MEMBERS, MINUTES
from dashboard.reading.problems import NAMED
from dashboard.reading.questions import ALL_ROWS, Reading
from dashboard.reading.time_range import TimeRange
from dashboard.reading.widespread_findings import widespread
from streaming.tables.schema import Row
from streaming.terminal.format import queue_name, queues_text
from streaming.views.audit_texts import strategy_text
from streaming.views.group_state_texts import (
    has_former_members,
    has_former_spans,
    is_under_way,
    never_had_members,
    state_text,
)
from streaming.views.lag_ages import group_lag_text
from streaming.views.pods import with_pods
from streaming.views.related_findings import with_ways

# Each table on the page shows at most this many rows; the download has all of them.
ROWS = 200
# The chart of minutes, and its downloads, have at most this many: three and a half days.
MINUTE_ROWS = 5_000
LAST_REBALANCES = 25


def group_page(reading: Reading, cluster: str, group: str, span: TimeRange, budget_s: float = 0) -> dict[str, Any]:
    """Return a group with its members, queues, findings, rebalances, and what it did in a range.

    Args:
        budget_s: The budget of outages of a group and day; 0 if there is none.

    Raises:
        NotFoundError: There is no such group.
    """
    of_group = {"cluster": cluster, "group_id": group}
    detail = group_detail(reading, group, cluster, last=LAST_REBALANCES, most=ROWS)
    found, now, findings = detail.group, detail.members, detail.findings
    last, audited = detail.rebalances, detail.audits
    spans = piece(reading, ASSIGNMENTS, {**of_group, "open": "yes"}, limit=ALL_ROWS).rows
    owners = queue_owners(spans)
    sessions = piece(reading, MEMBERS, of_group, sort="-joined_at", limit=ROWS)
    past = piece(reading, FINDINGS, of_group, limit=1).total - findings.total
    episodes = piece(reading, EPISODES, of_group, limit=LAST_REBALANCES)
    inside = {"since": str(span.since_ms), "until": str(span.until_ms)}
    minutes = piece(reading, MINUTES, of_group | inside, limit=MINUTE_ROWS)
    # Unless a range is chosen, the timeline shows the part of the day in which there is anything.
    since_ms, until_ms = (span.since_ms, span.until_ms) if span.is_chosen else (None, None)
    drawn = timeline(reading, cluster, group, since_ms=since_ms, until_ms=until_ms)
    counts = _counts(reading, cluster, group, span)
    new = {row["member_id"] for row in now if row["joined_at"] is None}
    offsets = [_placed(row) | {"is_new": row["member_id"] in new} for row in detail.progress]
    uncommitted = [row["queue"] for row in offsets if row["committed_offset"] is None]
    offsets = [] if len(uncommitted) == len(offsets) else offsets  # nothing is known of its offsets
    return {
        **form_of(found),
        "budget": shown_budgets(reading, budget_s, [(cluster, group)]).get((cluster, group)),
        "group": found,
        "known": reading.freshness.of(cluster),
        "state_text": state_text(found),
        "members": [_shown(member) for member in now[:ROWS]],
        "member_count": len(now),
        "unowned": unowned_queues(findings.rows)[:ROWS],
        "queues": owners[:ROWS],
        "queue_count": len(owners),
        "progress": offsets[:ROWS],
        "progress_count": len(offsets),
        "group_lag": group_lag_text(detail.progress),
        "uncommitted": uncommitted,
        "source": detail.source,
        "had_no_members": never_had_members(found),
        "is_rebalancing": is_under_way(found),
        "has_former_spans": has_former_spans(found),
        "has_former_members": has_former_members(found),
        "waits": (found["waits"] or "").split("; ") if found["waits"] else [],
        "is_reported": any(row["reported"] for row in owners),
        "has_reports": any(member["reported"] is not None for member in now),
        "widespread": [spread for spread in widespread(reading) if any(spread.has(row) for row in findings.rows)],
        "findings": with_ways(reading.tables, findings.rows, NAMED),
        "past_findings": past,
        "rebalances": folded(reading, last.rows),
        "rebalance_count": last.total,
        "is_ahead": bool(last.rows) and (last.rows[0]["event_time"] or 0) > (found["last_rebalance_at"] or 0),
        "episodes": episodes.rows,
        "episode_count": episodes.total,
        "audits": audited.rows,
        "audit_count": audited.total,
        "strategy_text": strategy_text(found),
        "sessions": with_pods(reading.tables, sessions.rows),
        "session_count": sessions.total,
        "minutes": minutes.rows[:ROWS],
        "minutes_drawn": len(minutes.rows),
        "minute_count": minutes.total,
        "has_outage": any(row["outage_max_ms"] or row["outage_min_ms"] for row in minutes.rows),
        "hours": plain_rows(churn(reading, cluster=cluster, group=group, span=span)),
        "counts": counts,
        "timeline": {
            name: drawn[name]
            for name in ("since", "until", "known_until", "origin", "origins", "is_cut", "marks_cut", "mark_count")
        },
        "drawn_marks": len(drawn["marks"]),
        "annotations": drawn["annotations"][-ROWS:][::-1],
        "annotation_count": len(drawn["annotations"]),
        "span_count": len(drawn["spans"]),
        "spans": _span_rows(drawn),
        "lag": lag_values(lag_history(reading, cluster, [group], span)),
        "data": {
            "lag": address(f"{API}lag", of_group | inside),
            "timeline": address(f"{API}timeline", of_group | (inside if span.is_chosen else {})),
            "churn": address(f"{API}churn", of_group | inside),
            "progress": address(f"{API}progress", of_group),
            "minutes": address(f"{API}{MINUTES.name}", of_group | inside, limit=MINUTE_ROWS),
        }
        | {
            name: address(API + path, of_group, limit=reading.max_rows)
            for name, path in (("rebalances", "rebalances"), ("audits", "audits"), ("episodes", "episodes"))
        }
        # These tables show only open rows, and so do their downloads.
        | {
            name: address(API + path, of_group, open="yes", limit=reading.max_rows)
            for name, path in (("members", "members"), ("queues", "assignments"), ("findings", "findings"))
        },
    }


def _counts(reading: Reading, cluster: str, group: str, span: TimeRange) -> Row:
    """Return the rebalances of a group in a range, and in the span before it; null where they are not wholly known."""
    sql = "select rebalances_range, rebalances_earlier, condition from found where cluster = ? and group_id = ?"
    rows = plain_rows(reading.sql(sql, {"found": groups_in(reading, span)}, [cluster, group]))
    return rows[0] if rows else {"rebalances_range": None, "rebalances_earlier": None, "condition": "unknown"}


def _placed(row: Row) -> Row:
    return row | {"queue": queue_name(row["topic"], row["broker"], row["queue_id"])}


def unowned_queues(findings: list[Row]) -> list[Row]:
    """Return the queues that open findings name as those without an owner, or that nobody reads, each once."""
    rows: dict[str, Row] = {}
    for finding in findings:
        if finding["kind"] in UNREAD_KINDS:
            for queue in finding["queues"] or ():
                name = queue_name(queue["topic"], queue["broker"], queue["queue_id"])
                rows.setdefault(
                    name,
                    {"queue": name, "kind": finding["kind"], "since": finding["opened_at"]}
                    | {"member_id": queue["member_id"], "reason": queue["reason"]},
                )
    return [rows[name] for name in sorted(rows)]


def _span_rows(drawn: dict[str, Any]) -> list[Row]:
    return [
        {"queue": drawn["queues"][queue], "member_id": drawn["members"][member], "begins": begins, "ends": ends}
        for queue, member, begins, ends in drawn["spans"][:ROWS]
    ]


def _shown(member: Row) -> Row:
    held = member["computed"] if member["reported"] is None else member["reported"]
    texts = {
        f"{origin}_text": None if member[origin] is None else queues_text(member[origin])
        for origin in ("computed", "reported", "target")
    }
    texts |= {f"{name}_text": ", ".join(member.get(name) or ()) or None for name in ("subscriptions", "strategies")}
    library = member.get("client_library") or member.get("language")
    texts["version_text"] = " ".join(filter(None, (library, member.get("client_version")))) or None
    return member | texts | {"held": len(held), "is_new": member["joined_at"] is None}


def queue_owners(spans: list[Row]) -> list[Row]:
    """Return one row per queue: its computed and its reported owner, and since when.

    Args:
        spans: Open ones of one group.
    """
    rows: dict[tuple[str | int, ...], Row] = {}
    for span in spans:
        place: tuple[str | int, ...] = (span["topic"], span["broker"] or "", span["queue_id"])
        if span["queue_id"] < 0:  # it is shared by message and has many owners, each of them in a row
            place = (*place, span["member_id"])
        name = queue_name(span["topic"], span["broker"], span["queue_id"])
        row = rows.setdefault(place, {"queue": name, "computed": None, "reported": None, "since": span["valid_from"]})
        row[span["origin"]] = span["member_id"]
        row["since"] = max(row["since"], span["valid_from"])
    is_compared = all(any(row[origin] for row in rows.values()) for origin in ("computed", "reported"))
    for row in rows.values():
        row["agrees"] = row["computed"] == row["reported"] if is_compared else None
    return [rows[key] for key in sorted(rows, key=lambda key: (key[0], key[1], key[2], *map(str, key[3:])))]
