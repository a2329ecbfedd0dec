"""Dashboard: the listings, for commands, pages and API."""

from __future__ import annotations

from collections.abc import Sequence

from dashboard.reading.known_time import unwritten_findings
from dashboard.reading.listed_advice import ADVICE as ADVICE_ROWS
from dashboard.reading.listed_advice import advice_table, with_advice
from dashboard.reading.listing import Listing
from dashboard.reading.member_queues import HELD, with_queues_and_pods
from dashboard.reading.overview import overview
from streaming.tables.columns import TEXT, Column
from streaming.tables.schema import TABLES
from streaming.views.group_health import HEALTH, SEVERITIES
from streaming.views.pods import POD_COLUMNS
from streaming.views.rebalance_episodes import with_episodes


def _equal(*names: str) -> dict[str, str]:
    return {name: f"coalesce({name}, '') = ?" for name in names}


def _among(name: str, separator: str) -> str:
    """Return a condition on a text that lists some values."""
    return f"list_contains(string_split(coalesce({name}, ''), '{separator}'), ?)"


def _time(name: str) -> str:
    return f"coalesce(epoch_ms({name}), 0)"


def _text(name: str) -> str:
    return f"coalesce({name}, '')"


def _number(name: str) -> str:
    """Return a number; null comes before 0."""
    return f"coalesce({name}, -1)"


def _rank(name: str, values: Sequence[str]) -> str:
    """Return the index of a text in a list; texts that are not in it come last."""
    return f"coalesce(list_position({[*values]}, {name}), {len(values) + 1})"


def _differing(table: str) -> str:
    """Return a number that differs if any column of the table's rows differs."""
    return f"hash({', '.join(TABLES[table].names)})"


_GROUP_ORDERS = {"cluster": "cluster", "group_id": "group_id"}
_QUEUE = ("topic", _text("broker"), "queue_id")

GROUPS = Listing(
    "groups",
    "",
    (
        *("cluster", "system", "group_id", "health", "state", "open_findings", "finding_kinds"),
        *("rebalances_hour", "rebalances_day", "queues_moved_day", "members", "queues", "idle_members"),
        *("unassigned_queues", "spread", "generation", "strategy", "mode", "last_rebalance_at", "last_rebalance_id"),
        *("strategy_verdict", "verdict_generations", "verdict_from", "verdict_reason"),
        *("library", "observed_by", "protocol", "epoch", "assignment_epoch", "waits", "member_epochs"),
        *("reconciling", "generation_source", "coordinator_state"),
    ),
    _equal("cluster", "group_id", "system", "health", "mode", "strategy_verdict", "library", "protocol")
    # For a kind that is not followed, the coordinator's state is known.
    | {"state": "? in (state, coordinator_state)", "kind": _among("finding_kinds", " ")},
    ("group_id", "cluster", "strategy"),
    _GROUP_ORDERS
    | {name: f"coalesce({name}, 0)" for name in ("open_findings", "rebalances_hour", "rebalances_day")}
    | {name: f"coalesce({name}, 0)" for name in ("queues_moved_day", "members", "queues", "idle_members")}
    | {name: f"coalesce({name}, 0)" for name in ("unassigned_queues", "spread", "generation")}
    | {
        "health": _rank("health", HEALTH),
        **{name: _text(name) for name in ("state", "system", "strategy")},
        "last_rebalance_at": _time("last_rebalance_at"),
    },
    "health",
    ("cluster", "group_id"),
    made=overview,
    added=(Column("advice", TEXT, "What would have saved most, by the newest run of `advise --all`; null = none"),),
    complete=lambda reading, rows, _at_ms: with_advice(reading, rows),
)
REBALANCES = Listing(
    "rebalances",
    "rebalances",
    TABLES["rebalances"].names,
    _equal("cluster", "group_id", "system", "status", "rebalance_id")
    | {
        "trigger": 'list_contains(list_transform(coalesce(triggers, []), lambda part: part.kind) || ["trigger"], ?)',
        "agrees": "coalesce(agrees::varchar, 'unknown') = ?",
        "client": "list_contains(list_transform(coalesce(triggers, []), lambda part: part.client), ?)",
    },
    ("group_id", "cluster", "rebalance_id"),
    _GROUP_ORDERS
    | {
        "event_time": _time("event_time"),
        "generation": "coalesce(generation, 0)",
        "trigger": _text('"trigger"'),
        "status": _text("status"),
        "members_after": "coalesce(members_after, 0)",
        "queues_moved": "coalesce(queues_moved, 0)",
        "queue_outage_max_ms": "coalesce(queue_outage_max_ms, queue_outage_min_ms, 0)",
        "outage_max_ms": "coalesce(outage_max_ms, outage_min_ms, 0)",
        "repeated_messages": "coalesce(repeated_messages, 0) + coalesce(repeated_estimated_messages, 0)",
        "waiting_messages": "coalesce(waiting_messages, 0) + coalesce(waiting_estimated_messages, 0)",
    },
    "-event_time",
    ("rebalance_id",),
    times=("event_time",),
    is_recent=True,
    complete=lambda reading, rows, _at_ms: with_episodes(reading.tables, rows),
)
EPISODES = Listing(
    "episodes",
    "episodes",
    TABLES["episodes"].names,
    _equal("cluster", "group_id", "kind", "episode_id", "client", "host", "prefix", "topic")
    | {"open": "(case when closed_at is null then 'yes' else 'no' end) = ?"},
    ("group_id", "cluster", "text"),
    _GROUP_ORDERS
    | {"began_at": _time("began_at"), "last_at": _time("last_at"), "kind": _text("kind")}
    | {name: f"coalesce({name}, 0)" for name in ("rebalances", "queues_moved")},
    "-began_at",
    ("episode_id",),
    times=("began_at", "closed_at"),
)
FINDINGS = Listing(
    "findings",
    "findings",
    TABLES["findings"].names,
    _equal("group_id", "kind", "severity", "finding_id")
    | {
        # A finding that no job can write may concern several clusters.
        "cluster": _among("cluster", ", "),
        "open": "(case when closed_at is null then 'yes' else 'no' end) = ?",
        "client": "list_contains(list_transform(coalesce(clients, []), lambda part: part.client), ?)",
    },
    ("group_id", "cluster", "kind", "message"),
    _GROUP_ORDERS
    | {
        "group_id": _text("group_id"),
        # Closed rows come after open ones.
        "severity": f"{_rank('severity', SEVERITIES)} + case when closed_at is null then 0 else 10 end",
        "kind": _text("kind"),
        "opened_at": _time("opened_at"),
        "closed_at": "coalesce(epoch_ms(closed_at), 9000000000000000)",
    },
    "severity",
    (f"-{_time('opened_at')}", "finding_id"),
    times=("opened_at", "closed_at"),
    unwritten=unwritten_findings,
)
MEMBERS = Listing(
    "members",
    "members",
    TABLES["members"].names,
    _equal("cluster", "group_id", "member_id", "client", "client_id", "host", "address", "instance_id")
    | {"open": "(case when left_at is null then 'yes' else 'no' end) = ?"},
    ("member_id", "client", "client_id", "host", "instance_id", "group_id"),
    _GROUP_ORDERS
    | {
        "member_id": "member_id",
        "client": _text("client"),
        "client_id": _text("client_id"),
        "host": _text("host"),
        "joined_at": _time("joined_at"),
        "left_at": "coalesce(epoch_ms(left_at), 9000000000000000)",
    },
    "-joined_at",
    ("cluster", "group_id", "member_id", _time("joined_at")),
    times=("joined_at", "left_at"),
    added=(*HELD, *POD_COLUMNS),
    complete=with_queues_and_pods,
)
ASSIGNMENTS = Listing(
    "assignments",
    "assignments",
    TABLES["assignments"].names,
    _equal("cluster", "group_id", "topic", "member_id", "origin")
    | {"open": "(case when valid_to is null then 'yes' else 'no' end) = ?"},
    ("topic", "member_id"),
    _GROUP_ORDERS | {"topic": "topic", "member_id": "member_id", "valid_from": _time("valid_from")},
    "cluster",
    ("cluster", "group_id", *_QUEUE, "origin", "member_id", _time("valid_from")),
    times=("valid_from", "valid_to"),
)
REJECTED = Listing(
    "rejected-events",
    "rejected_events",
    TABLES["rejected_events"].names,
    _equal("cluster", "group_id", "reason", "source"),
    ("cluster", "group_id", "reason", "detail", "raw"),
    {"seen_at": _time("seen_at"), "reason": _text("reason"), "cluster": _text("cluster")},
    "-seen_at",
    # Several inputs may have the same position, or none; the other columns distinguish them.
    (*(_text(name) for name in ("source", "position", "reason", "raw_sha256")), _differing("rejected_events")),
    times=("seen_at",),
)
MINUTES = Listing(
    "group-minutes",
    "group_minutes",
    TABLES["group_minutes"].names,
    _equal("cluster", "group_id"),
    ("group_id",),
    _GROUP_ORDERS | {"minute": _time("minute")},
    "-minute",
    ("cluster", "group_id", _time("minute")),
    times=("minute",),
    is_recent=True,
)
PROGRESS = Listing(
    "queue-progress",
    "queue_progress",
    TABLES["queue_progress"].names,
    _equal("cluster", "group_id", "topic"),
    ("topic",),
    _GROUP_ORDERS | {"event_time": _time("event_time"), "lag": _number("lag")},
    "-event_time",
    ("cluster", "group_id", *_QUEUE, _time("event_time"), _time("committed_at"), _time("end_at")),
    times=("event_time",),
    is_recent=True,
)
AUDITS = Listing(
    "audits",
    "audits",
    TABLES["audits"].names,
    _equal("cluster", "group_id", "system", "verdict", "reason", "rebalance_id"),
    ("group_id", "cluster", "reason", "detail"),
    _GROUP_ORDERS
    | {
        "event_time": _time("event_time"),
        "generation": "coalesce(generation, 0)",
        "verdict": _text("verdict"),
        "queues_differing": "coalesce(queues_differing, 0)",
    },
    "-event_time",
    ("rebalance_id",),
    times=("event_time",),
    is_recent=True,
)
ANNOTATIONS = Listing(
    "annotations",
    "annotations",
    TABLES["annotations"].names,
    # Those that name no cluster concern every one.
    _equal("annotation_id", "kind") | {"cluster": "(cluster is null or cluster = ?)"},
    ("text", "kind", "annotation_id"),
    {"began_at": _time("began_at"), "written_at": _time("written_at"), "kind": _text("kind")},
    "-began_at",
    ("annotation_id",),
    times=("began_at", "ended_at"),
    skipping=(),
)
ADVICE = Listing(
    ADVICE_ROWS.name,
    "",
    ADVICE_ROWS.names,
    _equal("cluster", "group_id", "system", "policy", "result", "sure"),
    ("group_id", "cluster", "policy"),
    _GROUP_ORDERS
    | {name: _number(name) for name in ("saved_percent", "saved_repeated_messages", "rebalances", "queues_moved")}
    | {
        # Where only messages are saved, or nothing, comes last.
        "saved_pause_ms": "coalesce(saved_pause_ms, case when policy is null then -1 else 0 end)",
        "policy": _text("policy"),
        "sure": _text("sure"),
    },
    "-saved_pause_ms",
    ("cluster", "group_id"),
    made=advice_table,
)
LISTINGS = {
    listing.name: listing
    for listing in (
        GROUPS,
        REBALANCES,
        FINDINGS,
        MEMBERS,
        ASSIGNMENTS,
        REJECTED,
        MINUTES,
        PROGRESS,
        AUDITS,
        ANNOTATIONS,
        EPISODES,
        ADVICE,
    )
}
