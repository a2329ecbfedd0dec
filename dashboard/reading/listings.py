"""Dashboard: what can be listed: the rows of each listing, its filters and orders. Pages and API share them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
        table: Whose rows they are; empty = ``made`` makes them.
        where: The conditions by which files are skipped, as ``Reader.read`` takes them.
        columns: Names, in order; all others stay inside.
        filters: Parameter -> condition with one ``?``.
        searched: Columns that the parameter ``q`` looks in.
        orders: Name of an order -> expression that is never null; ``-name`` descends.
        default: The order of whoever names none.
        key: Expressions that tell rows apart, never null.
        made: Makes the rows where they are no table's.
    """

    name: str
    table: str
    where: Callable[[Reading, Asked], dict[str, object]]
    columns: tuple[str, ...]
    filters: Mapping[str, str]
    searched: tuple[str, ...]
    orders: Mapping[str, str]
    default: str
    key: tuple[str, ...]
    made: Callable[[Reading], pa.Table] | None = None

    def rows(
        self,
        reading: Reading,
        asked: Asked,
        *,
        columns: Sequence[str] | None = None,
        bounds: Mapping[str, object] | None = None,
    ) -> pa.Table:
        """Read the rows among which those are that are asked for.

        Args:
            columns: Only these; None = all.
            bounds: Further conditions, of columns for which ``where`` has none.
        """
        if self.made is not None:
            return self.made(reading)
        return reading.tables.read(self.table, columns=columns, where=self.where(reading, asked) | dict(bounds or {}))


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


def _within(column: str) -> Callable[[Reading, Asked], dict[str, object]]:
    """Return the conditions of rows with a time: the last day, but a group's own history from its beginning."""

    def where(reading: Reading, asked: Asked) -> dict[str, object]:
        return _where(asked) | {column: time_span(reading, asked, is_bounded="group_id" not in asked)}

    return where


def _of_group(_: Reading, asked: Asked) -> dict[str, object]:
    return {name: asked.get(name) for name in ("cluster", "group_id")}


def _of_member(_: Reading, asked: Asked) -> dict[str, object]:
    return _where(asked)


def _of_rejected_events(reading: Reading, asked: Asked) -> dict[str, object]:
    return {"seen_at": time_span(reading, asked, is_bounded=False)}


_GROUP_ORDERS = {"cluster": "cluster", "group_id": "group_id"}
_QUEUE = ("topic", "coalesce(broker, '')", "queue_id")

GROUPS = Listing(
    "groups",
    "",
    _of_group,
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
    made=overview,
)
REBALANCES = Listing(
    "rebalances",
    "rebalances",
    _within("event_time"),
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
    "findings",
    _of_group,
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
    "members",
    _of_member,
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
    "assignments",
    _of_member,
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
    "rejected_events",
    _of_rejected_events,
    TABLES["rejected_events"].names,
    _equal("cluster", "group_id", "reason", "source"),
    ("cluster", "group_id", "reason", "detail", "raw"),
    {"seen_at": _time("seen_at"), "reason": "reason", "cluster": "coalesce(cluster, '')"},
    "-seen_at",
    ("source", "position", "reason", "coalesce(raw_sha256, '')"),
)
MINUTES = Listing(
    "group-minutes",
    "group_minutes",
    _within("minute"),
    TABLES["group_minutes"].names,
    _equal("cluster", "group_id"),
    ("group_id",),
    _GROUP_ORDERS | {"minute": _time("minute")},
    "-minute",
    ("cluster", "group_id", _time("minute")),
)
PROGRESS = Listing(
    "queue-progress",
    "queue_progress",
    _within("event_time"),
    TABLES["queue_progress"].names,
    _equal("cluster", "group_id", "topic"),
    ("topic",),
    _GROUP_ORDERS | {"event_time": _time("event_time"), "lag": "lag"},
    "-event_time",
    ("cluster", "group_id", *_QUEUE, _time("event_time"), _time("committed_at"), _time("end_at")),
)
AUDITS = Listing(
    "audits",
    "audits",
    _within("event_time"),
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
