"""Shell: which rows of each table are old enough to be dropped, and the SQL that finds them. No I/O.

Age is event time: how much older a row is than the newest event that the tables have of its cluster. So a recording
that is read years later keeps its rows, and a cluster that is away keeps its last days. Nothing that still holds is
dropped: no open span, session or finding, and no last row of a thing that its table shows as of its last row, while its
group exists.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Set
from types import MappingProxyType
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from streaming.tables.schema import TABLES

# Beside the columns of a thing: up to which time its rows go, exclusive, and how many these are.
BOUND, ROWS = "bound", "rows"
# Property of a table: of each cluster, as JSON, the time before which rows may be missing.
DROPPED_BEFORE = "rebalance-monitor.dropped-before"
_GROUP = ("cluster", "group_id")


class Retention(NamedTuple):
    """How the age of a table's rows is measured.

    Attributes:
        time: The column that must be old; where it is the end of a span, an open one is null and never old.
        last_of: The newest row with the same values in these columns holds until now: it stays, however old, while
            ``groups`` has its group; empty = no row does.
        is_event_time: Whether it is compared with the events of the cluster; otherwise with the monitor's own batches.
    """

    time: str
    last_of: tuple[str, ...] = ()
    is_event_time: bool = True


RETENTIONS: Mapping[str, Retention] = MappingProxyType(
    {
        "rebalances": Retention("event_time", _GROUP),
        "assignments": Retention("valid_to"),
        "members": Retention("left_at"),
        "topics": Retention("valid_to"),
        "findings": Retention("closed_at"),
        "rejected_events": Retention("seen_at", is_event_time=False),
        "changes": Retention("event_time"),
        "group_minutes": Retention("minute", _GROUP),
        "queue_progress": Retention("event_time", (*_GROUP, "topic", "broker", "queue_id")),
        "audits": Retention("event_time", _GROUP),
    }
)


class OldRows(NamedTuple):
    """Which rows of a table are to be dropped.

    Attributes:
        retention: How their age is measured.
        before_ms: Rows with an older time are dropped: of each cluster, or of all. A cluster that is not named keeps
            its rows.
        groups: The groups that there are, as (cluster, group_id): the last rows of others are dropped too.
    """

    retention: Retention
    before_ms: Mapping[str, int] | int
    groups: Callable[[], Set[tuple[str, str]]] = frozenset

    @property
    def newest_ms(self) -> int:
        """Return the time from which no row of any cluster is dropped."""
        return self.before_ms if isinstance(self.before_ms, int) else max(self.before_ms.values(), default=0)

    def before(self, cluster: str | None) -> int:
        """Return the time before which rows of a cluster are dropped."""
        return self.before_ms if isinstance(self.before_ms, int) else self.before_ms.get(cluster or "", 0)


class Dropped(NamedTuple):
    """How many rows of a cluster are dropped (None: of inputs that name none), and before which time they are."""

    cluster: str | None
    rows: int
    before_ms: int


class Dialect(NamedTuple):
    """How an engine writes constants: a time in epoch milliseconds, and a text."""

    time: Callable[[int], str]
    text: Callable[[str], str]


def condition(old: OldRows, dialect: Dialect) -> str:
    """Return SQL that holds for the rows that are old enough."""
    time = old.retention.time
    if isinstance(old.before_ms, int):
        return f"{time} < {dialect.time(old.before_ms)}"
    tests = [f"(cluster = {dialect.text(name)} AND {time} < {dialect.time(ms)})" for name, ms in old.before_ms.items()]
    return f"({' OR '.join(tests)})" if tests else "false"


def counting_sql(old: OldRows, table: str, dialect: Dialect) -> str:
    """Return SQL that counts old rows of each thing (each cluster, where none is kept as the last).

    Its columns: those of the thing, ``last`` = their newest time, ``old_rows``, ``superseded`` = those before ``last``.
    """
    time, by = old.retention.time, ", ".join(_thing(old.retention))
    return (
        f"SELECT {by}, last, count(*) AS old_rows, sum(CASE WHEN {time} < last THEN 1 ELSE 0 END) AS superseded FROM"
        f" (SELECT {by}, {time}, max({time}) OVER (PARTITION BY {by}) AS last FROM {table}"
        f" WHERE {condition(old, dialect)}) AS old GROUP BY {by}, last"
    )


def join(old: OldRows, dialect: Dialect) -> str:
    """Return SQL by which rows of ``target`` are those that ``source``, of ``to_drop``, drops."""
    time = old.retention.time
    same = [f"(target.{name} = source.{name})" for name in _GROUP]
    same += [f"(target.{name} IS NOT DISTINCT FROM source.{name})" for name in old.retention.last_of[len(_GROUP) :]]
    # Files without old rows are passed over by the constant.
    return " AND ".join([*same, f"target.{time} < {dialect.time(old.newest_ms)}", f"target.{time} < source.{BOUND}"])


def to_drop(old: OldRows, counted: pa.Table) -> pa.Table:
    """Return of each thing how many rows go, and before which time, from what ``counting_sql`` found.

    Without last rows it is each cluster, and the time is that of ``condition``.
    """
    names = _thing(old.retention)
    columns = {name: counted[name].cast(_type(name)) for name in names}
    old_rows = counted["old_rows"].cast(pa.int64())
    if not old.retention.last_of:
        return pa.table({**columns, ROWS: old_rows})
    last = counted["last"].cast(pa.int64())
    there = old.groups() if counted.num_rows else frozenset[tuple[str, str]]()
    pairs = zip(*(columns[name].to_pylist() for name in _GROUP), strict=True)
    stays = pa.chunked_array([pa.array([pair in there for pair in pairs], pa.bool_())])
    rows = pc.if_else(stays, counted["superseded"].cast(pa.int64()), old_rows)
    bound = pc.if_else(stays, last, pc.add(last, 1)).cast(pa.timestamp("us", "UTC"))
    return pa.table({**columns, BOUND: bound, ROWS: rows}).filter(pc.greater(rows, 0))


def dropped(old: OldRows, going: pa.Table) -> tuple[Dropped, ...]:
    """Return how many rows go of each cluster, in order."""
    sums: dict[str | None, int] = {}
    for cluster, rows in zip(going["cluster"].to_pylist(), going[ROWS].to_pylist(), strict=True):
        sums[cluster] = sums.get(cluster, 0) + rows
    return tuple(Dropped(name, sums[name], old.before(name)) for name in sorted(sums, key=lambda name: name or ""))


def noted(old: OldRows, gone: tuple[Dropped, ...], properties: Mapping[str, str]) -> str:
    """Return the property that says before which times rows may be missing, once these are dropped."""
    times = dict(dropped_before(properties))
    if not isinstance(old.before_ms, int):
        for one in gone:
            if one.cluster is not None:
                times[one.cluster] = max(times.get(one.cluster, one.before_ms), one.before_ms)
    return json.dumps(times, sort_keys=True)


def dropped_before(properties: Mapping[str, str]) -> Mapping[str, int]:
    """Return of each cluster the time before which a table with these properties may lack rows that are over."""
    times: dict[str, int] = json.loads(properties.get(DROPPED_BEFORE) or "{}")
    return times


def _thing(retention: Retention) -> tuple[str, ...]:
    return retention.last_of or ("cluster",)


def _type(name: str) -> pa.DataType:
    return TABLES["queue_progress"].schema.field(name).type
