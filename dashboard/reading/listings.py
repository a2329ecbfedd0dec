"""Dashboard: the listings, with their rows, filters and orders, for commands, pages and API."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

import pyarrow as pa

from dashboard.reading.known_time import unwritten_findings
from dashboard.reading.member_queues import HELD, with_queues_and_pods
from dashboard.reading.overview import overview
from dashboard.reading.questions import Reading
from dashboard.reading.window import last_day
from streaming.tables.arrow_rows import to_arrow
from streaming.tables.columns import Column
from streaming.tables.schema import TABLES, Row
from streaming.views.group_health import HEALTH, SEVERITIES
from streaming.views.group_state_texts import STATES
from streaming.views.pods import POD_COLUMNS
from streaming.views.reader import Within
from streaming.views.rebalance_episodes import with_episodes
from udfs.model.audits import Verdict
from udfs.model.episode_changed import EpisodeKind
from udfs.model.events import Mode
from udfs.model.journal import TRIGGER_ORDER
from udfs.model.spans import Origin
from udfs.model.systems import SYSTEMS

# Parameters that do not filter by equality: a part of a name, a span of time, and a time; in epoch ms.
SEARCH, SINCE, UNTIL, AT = "q", "since", "until", "at"
_SKIPPING = ("cluster", "group_id", "member_id", "rebalance_id")
Chosen = Mapping[str, str]
# Filters that take one of a few values, and synonyms of these values.
VALUES: Mapping[str, Sequence[str]] = {
    "health": HEALTH,
    "severity": SEVERITIES,
    "system": tuple(SYSTEMS),
    "state": STATES,
    "mode": get_args(Mode),
    "strategy_verdict": ("proven", "contradicted", "not_recomputable"),
    "status": ("completed", "failed"),
    "trigger": TRIGGER_ORDER,
    "agrees": ("true", "false", "unknown"),
    "origin": get_args(Origin),
    "verdict": get_args(Verdict),
    "open": ("yes", "no"),
    "episode_kind": get_args(EpisodeKind),
}
SYNONYMS: Mapping[str, str] = {"yes": "true", "true": "yes", "no": "false", "false": "no"}


@dataclass(frozen=True)
class Listing:
    """A set of rows that can be browsed.

    Attributes:
        name: The name in addresses.
        table: The table of the rows; empty if ``made`` makes them.
        columns: Names of the columns of these rows, in order; other columns are internal.
        filters: Parameter -> condition with one ``?``.
        searched: Columns that the parameter ``q`` searches.
        orders: Name of an order -> expression that is never null; ``-name`` descends.
        default: The order when none is requested.
        key: Expressions that are never null; rows that are equal in all of them are equal.
        times: The columns compared with ``since`` and ``until``: the time of an event, or begin and end of a span,
            whose end is null while it is open. If empty, rows show the present, and have no such parameters. For spans,
            ``at`` selects those that are open at a time.
        is_recent: Only rows of the last day, unless a time, a group or a rebalance is requested.
        made: Makes the rows if they belong to no table. unwritten: Returns rows in addition to the table's.
        skipping: If these columns are required to have a value, files without such rows are skipped.
        added: Columns that ``complete`` adds to the rows of an answer, at a time or now; they cannot be filters or
            orders.
    """

    name: str
    table: str
    columns: tuple[str, ...]
    filters: Mapping[str, str]
    searched: tuple[str, ...]
    orders: Mapping[str, str]
    default: str
    key: tuple[str, ...]
    times: tuple[str, ...] = ()
    is_recent: bool = False
    made: Callable[[Reading], pa.Table] | None = None
    unwritten: Callable[[Reading], Sequence[Row]] = lambda _: ()
    skipping: tuple[str, ...] = _SKIPPING
    added: tuple[Column, ...] = ()
    complete: Callable[[Reading, list[Row], int | None], list[Row]] = lambda _reading, rows, _at_ms: rows

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of all columns of an answer, in order."""
        return (*self.columns, *(column.name for column in self.added))

    @property
    def parameters(self) -> tuple[str, ...]:
        """Return the parameters that select rows."""
        return (*self.filters, SEARCH, *((), (SINCE, UNTIL), (SINCE, UNTIL, AT))[len(self.times)])

    @property
    def values(self) -> dict[str, Sequence[str]]:
        """Return the filters that take one of a few values, with these values."""
        return {name: VALUES[name] for name in self.filters if name in VALUES}

    def where(self, reading: Reading, chosen: Chosen) -> dict[str, object]:
        """Return the conditions by which files are skipped, in the form of ``Reader.read``."""
        found: dict[str, object] = {name: chosen[name] for name in self.skipping if name in chosen}
        since, until, at = (int(chosen[name]) if name in chosen else None for name in (SINCE, UNTIL, AT))
        if self.is_recent and not chosen.keys() & {SINCE, UNTIL, "group_id", "rebalance_id"}:
            since = last_day(reading).since_ms
        if len(self.times) == 1:
            found[self.times[0]] = Within(since, until)
        elif self.times:
            begin, end = self.times
            # A span includes its begin, and not its end: a span that ended at a time was over by then.
            if at is not None:
                since, until = max(at, since or 0), min(at + 1, at + 1 if until is None else until)
            found[begin] = None if until is None else Within(until_ms=until)
            found[end] = None if since is None else Within(since + 1, or_null=True)
        return found

    def rows(
        self,
        reading: Reading,
        chosen: Chosen,
        *,
        columns: Sequence[str] | None = None,
        bounds: Mapping[str, object] | None = None,
    ) -> pa.Table:
        """Read the rows that contain the requested ones.

        Args:
            columns: Only these; None for all.
            bounds: Further conditions, on columns for which ``where`` has none.
        """
        if self.made is not None:
            return self.made(reading)
        where = self.where(reading, chosen)
        found = reading.tables.read(self.table, columns=columns, where=where | dict(bounds or {}))
        spans = [(name, within) for name in self.times if isinstance(within := where.get(name), Within)]
        more = [row for row in self.unwritten(reading) if all(within.holds(row[name]) for name, within in spans)]
        if not more:
            return found
        return pa.concat_tables([found, to_arrow(TABLES[self.table], more).select(found.column_names)])


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
    )
}
