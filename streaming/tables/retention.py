"""Shell: the rows of each table that are old enough to be dropped, and the SQL that finds them. No I/O.

Age is event time: how much older a row is than the cluster's newest event in the tables. So a recording that is read
years later keeps its rows, and a cluster that is away keeps its last days. Nothing that is still valid is dropped: no
open span, session or finding, and no last row of an object whose last row shows its current state, while its group
exists.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence, Set
from types import MappingProxyType
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from streaming.tables.predicates import Dialect
from streaming.tables.schema import TABLES
from udfs.model.annotations import POD_KIND

# Two extra columns: rows before this time are dropped, and how many these are.
BOUND, ROWS = "bound", "rows"
# This property of a table holds, as JSON, the time for each cluster before which rows may be missing.
DROPPED_BEFORE = "rebalance-monitor.dropped-before"
_GROUP = ("cluster", "group_id")
# Last rows are kept for each of these.
_NEVER_NULL = (*_GROUP, "topic", "queue_id")


class AgeRule(NamedTuple):
    """How the age of a table's rows is measured.

    Attributes:
        time: The column that must be old; if it is the end of a span, it is null for an open span, which is never old.
        last_of: The newest row with the same values in these columns is still valid: it stays, however old, while
            ``groups`` has its group; empty if no row stays.
        is_event_time: Whether it is compared with the events of the cluster; otherwise with the monitor's own batches.
    """

    time: str
    last_of: tuple[str, ...] = ()
    is_event_time: bool = True


RETENTIONS: Mapping[str, AgeRule] = MappingProxyType(
    {
        "rebalances": AgeRule("event_time", _GROUP),
        "assignments": AgeRule("valid_to"),
        "members": AgeRule("left_at"),
        "topics": AgeRule("valid_to"),
        "findings": AgeRule("closed_at"),
        "rejected_events": AgeRule("seen_at", is_event_time=False),
        "changes": AgeRule("event_time"),
        "group_minutes": AgeRule("minute", _GROUP),
        "queue_progress": AgeRule("event_time", (*_GROUP, "topic", "broker", "queue_id")),
        "audits": AgeRule("event_time", _GROUP),
        "annotations": AgeRule("written_at"),
        "episodes": AgeRule("closed_at"),
        "replays": AgeRule("started_at", is_event_time=False),
        "replay_groups": AgeRule("started_at", is_event_time=False),
    }
)


class OldRows(NamedTuple):
    """The rule for rows of a table that are to be dropped.

    Attributes:
        rule: How their age is measured.
        before_ms: Rows with an older time are dropped, by cluster or for all clusters. A cluster that is not named
            keeps its rows. An empty name stands for rows of no cluster: annotations.
        groups: The existing groups, as (cluster, group_id); the last rows of all others are dropped as well.
        followed: Platform -> since when its pods are followed. An annotation that says since then that a pod has its
            addresses, and not until when, still holds: it stays.
    """

    rule: AgeRule
    before_ms: Mapping[str, int] | int
    groups: Callable[[], Set[tuple[str, str]]] = frozenset
    followed: Mapping[str, int] = MappingProxyType({})

    @property
    def newest_ms(self) -> int:
        """Return the time from which no row of any cluster is dropped."""
        return self.before_ms if isinstance(self.before_ms, int) else max(self.before_ms.values(), default=0)

    def before(self, cluster: str | None) -> int:
        """Return the time before which rows of a cluster are dropped."""
        return self.before_ms if isinstance(self.before_ms, int) else self.before_ms.get(cluster or "", 0)


class Dropped(NamedTuple):
    """How many rows of a cluster are dropped (None for inputs that name none), and the time that they precede."""

    cluster: str | None
    rows: int
    before_ms: int


def condition(old: OldRows, dialect: Dialect) -> str:
    """Return SQL that holds for the rows that are old enough."""
    time = old.rule.time
    if isinstance(old.before_ms, int):
        return f"{time} < {dialect.time(old.before_ms)}"
    tests = [f"({_of(name, dialect)} AND {time} < {dialect.time(ms)})" for name, ms in old.before_ms.items()]
    return f"({' OR '.join(tests)}){_not_running(old, dialect)}" if tests else "false"


def _not_running(old: OldRows, dialect: Dialect) -> str:
    """Return SQL that leaves out the lives of pods that still run; empty if no pods are followed."""
    running = [
        f"(platform = {dialect.text(platform)} AND written_at >= {dialect.time(since)})"
        for platform, since in sorted(old.followed.items())
    ]
    if not running:
        return ""
    pods = f"kind = {dialect.text(POD_KIND)} AND ended_at IS NULL AND ({' OR '.join(running)})"
    return f" AND ({pods}) IS NOT TRUE"


def _of(cluster: str, dialect: Dialect) -> str:
    return f"cluster = {dialect.text(cluster)}" if cluster else "(cluster IS NULL OR cluster = '')"


def counting_sql(old: OldRows, table: str, dialect: Dialect) -> str:
    """Return SQL that counts old rows: by cluster as ``old_rows``.

    If last rows stay, it counts by the columns ``last_of``, with ``last``, the newest old time, and ``superseded``, the
    number of older rows.
    """
    time, where = old.rule.time, condition(old, dialect)
    if not old.rule.last_of:
        return f"SELECT cluster, count(*) AS old_rows FROM {table} WHERE {where} GROUP BY cluster"
    by = ", ".join(old.rule.last_of)
    of_last = ", ".join(f"last_rows.{name}" for name in old.rule.last_of)
    rows = f"(SELECT {by}, {time} FROM {table} WHERE {where})"
    # A join is used, because a window would sort all rows.
    return (
        f"SELECT {of_last}, last_rows.last, count(*) AS old_rows,"
        f" sum(CASE WHEN old.{time} < last_rows.last THEN 1 ELSE 0 END) AS superseded"
        f" FROM {rows} AS old JOIN (SELECT {by}, max({time}) AS last FROM {rows} AS grouped GROUP BY {by}) AS last_rows"
        f" ON {' AND '.join(_same(old.rule.last_of, 'old', 'last_rows'))} GROUP BY {of_last}, last_rows.last"
    )


def join(old: OldRows, dialect: Dialect) -> str:
    """Return SQL that matches rows of ``target`` with the rows of ``source``, of ``to_drop``, that drop them."""
    time = old.rule.time
    same = _same(old.rule.last_of, "target", "source")
    # The constant allows files without old rows to be skipped.
    return " AND ".join([*same, f"target.{time} < {dialect.time(old.newest_ms)}", f"target.{time} < source.{BOUND}"])


def to_drop(old: OldRows, counted: pa.Table) -> pa.Table:
    """Return, for each key, how many rows are dropped and before which time, from the result of ``counting_sql``.

    If no last rows stay, the key is the cluster, and the time is that of ``condition``.
    """
    names = _thing(old.rule)
    columns = {name: counted[name].cast(_type(name)) for name in names}
    old_rows = counted["old_rows"].cast(pa.int64())
    if not old.rule.last_of:
        return pa.table({**columns, ROWS: old_rows})
    last = counted["last"].cast(pa.int64())
    there = old.groups() if counted.num_rows else frozenset[tuple[str, str]]()
    pairs = zip(*(columns[name].to_pylist() for name in _GROUP), strict=True)
    stays = pa.chunked_array([pa.array([pair in there for pair in pairs], pa.bool_())])
    rows = pc.if_else(stays, counted["superseded"].cast(pa.int64()), old_rows)
    bound = pc.if_else(stays, last, pc.add(last, 1)).cast(pa.timestamp("us", "UTC"))
    return pa.table({**columns, BOUND: bound, ROWS: rows}).filter(pc.greater(rows, 0))


def count_dropped(old: OldRows, to_delete: pa.Table) -> tuple[Dropped, ...]:
    """Return how many rows of each cluster are dropped, in order."""
    sums: dict[str | None, int] = {}
    for cluster, rows in zip(to_delete["cluster"].to_pylist(), to_delete[ROWS].to_pylist(), strict=True):
        sums[cluster] = sums.get(cluster, 0) + rows
    return tuple(Dropped(name, sums[name], old.before(name)) for name in sorted(sums, key=lambda name: name or ""))


def noted(old: OldRows, dropped: tuple[Dropped, ...], properties: Mapping[str, str]) -> str:
    """Return the property with the times before which rows may be missing, once these are dropped."""
    times = dict(dropped_before(properties))
    if not isinstance(old.before_ms, int):
        for rows in dropped:
            if rows.cluster is not None:
                times[rows.cluster] = max(times.get(rows.cluster, rows.before_ms), rows.before_ms)
    return json.dumps(times, sort_keys=True)


def dropped_before(properties: Mapping[str, str]) -> Mapping[str, int]:
    """Return for each cluster the time before which a table with these properties may lack ended rows."""
    times: dict[str, int] = json.loads(properties.get(DROPPED_BEFORE) or "{}")
    return times


def _same(names: Sequence[str], table: str, other: str) -> list[str]:
    """Return SQL that compares the keys of two tables; engines hash values that are compared by ``=``."""
    signs = ("=" if name in _NEVER_NULL else "IS NOT DISTINCT FROM" for name in names)
    return [f"({table}.{name} {sign} {other}.{name})" for name, sign in zip(names, signs, strict=True)]


def _thing(rule: AgeRule) -> tuple[str, ...]:
    return rule.last_of or ("cluster",)


def _type(name: str) -> pa.DataType:
    return TABLES["queue_progress"].schema.field(name).type
