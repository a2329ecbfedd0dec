"""Dashboard: what can be listed: the rows of each listing, its filters and orders. Pages and API share them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from dashboard.reading.overview import overview
from dashboard.reading.questions import Reading
from dashboard.reading.window import last_day
from streaming.tables.schema import TABLES
from streaming.views.reader import Within

Asked = Mapping[str, str]


@dataclass(frozen=True)
class Listing:
    """Rows that people look through.

    Attributes:
        name: As in addresses.
        rows: Reads them; what files can be skipped by, it uses itself.
        columns: Names, in order; all others stay inside.
        filters: Parameter -> condition with one ``?``.
        searched: Columns that the parameter ``q`` looks in.
        orders: Name of an order -> expression that is never null; ``-name`` descends.
        default: The order of whoever names none.
        key: Expressions that tell rows apart, never null.
    """

    name: str
    rows: Callable[[Reading, Asked], pa.Table]
    columns: tuple[str, ...]
    filters: Mapping[str, str]
    searched: tuple[str, ...]
    orders: Mapping[str, str]
    default: str
    key: tuple[str, ...]


def _equal(*names: str) -> dict[str, str]:
    return {name: f"coalesce({name}, '') = ?" for name in names}


def _time(name: str) -> str:
    return f"coalesce(epoch_ms({name}), 0)"


def _where(asked: Asked) -> dict[str, object]:
    return {name: asked[name] for name in ("cluster", "group_id", "member_id") if asked.get(name)}


def time_span(reading: Reading, asked: Asked, *, is_bounded: bool = True) -> Within:
    """Return the span of event time that is asked for with ``since`` and ``until`` (epoch ms), else the last day."""
    window = last_day(reading)
    since = asked.get("since") or (window.since_ms if is_bounded else None)
    until = asked.get("until") or None
    return Within(None if since is None else int(since), None if until is None else int(until))


def _rebalances(reading: Reading, asked: Asked) -> pa.Table:
    # A group's own history is short enough to be read from its beginning.
    span = time_span(reading, asked, is_bounded="group_id" not in asked)
    return reading.tables.read("rebalances", where=_where(asked) | {"event_time": span})


def _findings(reading: Reading, asked: Asked) -> pa.Table:
    return reading.tables.read("findings", where={"cluster": asked.get("cluster"), "group_id": asked.get("group_id")})


def _members(reading: Reading, asked: Asked) -> pa.Table:
    return reading.tables.read("members", where=_where(asked))


def _assignments(reading: Reading, asked: Asked) -> pa.Table:
    return reading.tables.read("assignments", where=_where(asked))


def _rejected(reading: Reading, asked: Asked) -> pa.Table:
    return reading.tables.read("rejected_events", where={"seen_at": time_span(reading, asked, is_bounded=False)})


def _audits(reading: Reading, asked: Asked) -> pa.Table:
    span = time_span(reading, asked, is_bounded="group_id" not in asked)
    return reading.tables.read("audits", where=_where(asked) | {"event_time": span})


def _minutes(reading: Reading, asked: Asked) -> pa.Table:
    span = time_span(reading, asked, is_bounded="group_id" not in asked)
    return reading.tables.read("group_minutes", where=_where(asked) | {"minute": span})


def _progress(reading: Reading, asked: Asked) -> pa.Table:
    span = time_span(reading, asked, is_bounded="group_id" not in asked)
    return reading.tables.read("queue_progress", where=_where(asked) | {"event_time": span})


_GROUP_ORDERS = {"cluster": "cluster", "group_id": "group_id"}
_QUEUE = ("topic", "coalesce(broker, '')", "queue_id")

GROUPS = Listing(
    "groups",
    lambda reading, _: overview(reading),
    (
        *("cluster", "system", "group_id", "health", "state", "open_findings", "finding_kinds"),
        *("rebalances_hour", "rebalances_day", "queues_moved_day", "members", "queues", "idle_members"),
        *("unassigned_queues", "spread", "generation", "strategy", "mode", "last_rebalance_at", "last_rebalance_id"),
        *("strategy_verdict", "verdict_generations", "verdict_from", "verdict_reason"),
        *("library", "observed_by", "protocol", "epoch", "assignment_epoch", "waits"),
    ),
    _equal("cluster", "group_id", "system", "state", "health", "mode", "strategy_verdict", "library", "protocol")
    | {"kind": "contains(coalesce(finding_kinds, ''), ?)"},
    ("group_id", "cluster", "strategy"),
    _GROUP_ORDERS
    | {name: f"coalesce({name}, 0)" for name in ("open_findings", "rebalances_hour", "rebalances_day")}
    | {name: f"coalesce({name}, 0)" for name in ("queues_moved_day", "members", "queues", "idle_members")}
    | {name: f"coalesce({name}, 0)" for name in ("unassigned_queues", "spread", "generation")}
    | {
        "health": "list_position(['critical', 'warning', 'info', 'ok', 'unknown'], health)",
        "state": "state",
        "system": "system",
        "strategy": "coalesce(strategy, '')",
        "last_rebalance_at": _time("last_rebalance_at"),
    },
    "health",
    ("cluster", "group_id"),
)
REBALANCES = Listing(
    "rebalances",
    _rebalances,
    TABLES["rebalances"].names,
    _equal("cluster", "group_id", "system", "status", "rebalance_id")
    | {
        "trigger": 'list_contains(list_transform(coalesce(triggers, []), lambda one: one.kind) || ["trigger"], ?)',
        "agrees": "coalesce(agrees::varchar, 'unknown') = ?",
    },
    ("group_id", "cluster", "rebalance_id"),
    _GROUP_ORDERS
    | {
        "event_time": _time("event_time"),
        "generation": "coalesce(generation, 0)",
        "trigger": '"trigger"',
        "status": "status",
        "members_after": "coalesce(members_after, 0)",
        "queues_moved": "coalesce(queues_moved, 0)",
        "pause_ms": "coalesce(pause_ms, pause_estimated_ms, 0)",
        "queue_pause_ms": "coalesce(queue_pause_ms, queue_pause_estimated_ms, 0)",
    },
    "-event_time",
    ("rebalance_id",),
)
FINDINGS = Listing(
    "findings",
    _findings,
    TABLES["findings"].names,
    _equal("cluster", "group_id", "kind", "severity", "finding_id")
    | {"open": "(case when closed_at is null then 'yes' else 'no' end) = ?"},
    ("group_id", "cluster", "kind", "message"),
    _GROUP_ORDERS
    | {
        "group_id": "coalesce(group_id, '')",
        "severity": "list_position(['critical', 'warning', 'info'], severity)",
        "kind": "kind",
        "opened_at": f"coalesce({_time('opened_at')}, 0)",
        "closed_at": "coalesce(epoch_ms(closed_at), 9000000000000000)",
    },
    "severity",
    ("-coalesce(epoch_ms(opened_at), 0)", "finding_id"),
)
MEMBERS = Listing(
    "members",
    _members,
    TABLES["members"].names,
    _equal("cluster", "group_id", "member_id", "client_id", "host", "instance_id")
    | {"open": "(case when left_at is null then 'yes' else 'no' end) = ?"},
    ("member_id", "client_id", "host", "instance_id", "group_id"),
    _GROUP_ORDERS
    | {
        "member_id": "member_id",
        "client_id": "coalesce(client_id, '')",
        "host": "coalesce(host, '')",
        "joined_at": _time("joined_at"),
        "left_at": "coalesce(epoch_ms(left_at), 9000000000000000)",
    },
    "-joined_at",
    ("cluster", "group_id", "member_id", _time("joined_at")),
)
ASSIGNMENTS = Listing(
    "assignments",
    _assignments,
    TABLES["assignments"].names,
    _equal("cluster", "group_id", "topic", "member_id", "origin")
    | {"open": "(case when valid_to is null then 'yes' else 'no' end) = ?"},
    ("topic", "member_id"),
    _GROUP_ORDERS | {"topic": "topic", "member_id": "member_id", "valid_from": _time("valid_from")},
    "cluster",
    ("cluster", "group_id", *_QUEUE, "origin", "member_id", _time("valid_from")),
)
REJECTED = Listing(
    "rejected-events",
    _rejected,
    TABLES["rejected_events"].names,
    _equal("cluster", "group_id", "reason", "source"),
    ("cluster", "group_id", "reason", "detail", "raw"),
    {"seen_at": _time("seen_at"), "reason": "reason", "cluster": "coalesce(cluster, '')"},
    "-seen_at",
    ("source", "position", "reason", "coalesce(raw_sha256, '')"),
)
MINUTES = Listing(
    "group-minutes",
    _minutes,
    TABLES["group_minutes"].names,
    _equal("cluster", "group_id"),
    ("group_id",),
    _GROUP_ORDERS | {"minute": _time("minute")},
    "-minute",
    ("cluster", "group_id", _time("minute")),
)
PROGRESS = Listing(
    "queue-progress",
    _progress,
    TABLES["queue_progress"].names,
    _equal("cluster", "group_id", "topic"),
    ("topic",),
    _GROUP_ORDERS | {"event_time": _time("event_time"), "lag": "lag"},
    "-event_time",
    ("cluster", "group_id", *_QUEUE, _time("event_time"), _time("committed_at"), _time("end_at")),
)
AUDITS = Listing(
    "audits",
    _audits,
    TABLES["audits"].names,
    _equal("cluster", "group_id", "system", "verdict", "reason", "rebalance_id"),
    ("group_id", "cluster", "reason", "detail"),
    _GROUP_ORDERS
    | {
        "event_time": _time("event_time"),
        "generation": "coalesce(generation, 0)",
        "verdict": "verdict",
        "queues_differing": "coalesce(queues_differing, 0)",
    },
    "-event_time",
    ("rebalance_id",),
)
LISTINGS = {
    one.name: one for one in (GROUPS, REBALANCES, FINDINGS, MEMBERS, ASSIGNMENTS, REJECTED, MINUTES, PROGRESS, AUDITS)
}
