"""Dashboard: every group with its health, open findings and rebalances: the columns of the first page."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from dashboard.reading.known_time import unknown_clusters
from dashboard.reading.questions import Reading
from dashboard.reading.widespread_findings import widespread
from dashboard.reading.window import HOUR_MS, Recent, ended_before, last_day, recent
from streaming.tables.columns import LONG, TEXT, Column
from streaming.views.group_health import HEALTH, health
from streaming.views.group_state_texts import NOT_FOLLOWED, STATE_COLUMNS, STATES, coordinator_state
from streaming.views.reader import Within
from streaming.views.widespread import WidespreadKind

# Columns of a row in addition to those of ``groups``.
ADDED = (
    Column(
        "health",
        TEXT,
        f"The worst of its findings, or what its state shows: {', '.join(HEALTH)}; a kind that is widespread in its "
        "cluster counts as info; unknown where the present of its cluster is",
    ),
    Column("open_findings", LONG, "Open findings"),
    Column("finding_kinds", TEXT, "Their kinds, with spaces between; null = there are none"),
    Column("rebalances_hour", LONG, "Rebalances of the last 60 minutes; null = its cluster was not known all the time"),
    Column("rebalances_day", LONG, "Rebalances of the last 24 hours; null as before"),
    Column("queues_moved_day", LONG, "Queues moved by these"),
    Column(
        "coordinator_state",
        TEXT,
        "Its state; of a kind that is not followed the coordinator's, where its records show it: " + ", ".join(STATES),
    ),
)

# The unknown clusters; and those of them whose recent time is unknown.
_UNKNOWN = "unknown as (select unnest(?::varchar[]) as cluster), ended as (select unnest(?::varchar[]) as cluster)"
_MANY = "many as (select unnest(?::varchar[]) as cluster, unnest(?::varchar[]) as kind, true as is_many)"
_OVERVIEW = f"""
with {_MANY}, {_UNKNOWN}, open as (
    select cluster, group_id, count(*) as findings,
        ['critical', 'warning', 'info'][min(case when is_many then 3 when severity = 'critical' then 1
            when severity = 'warning' then 2 else 3 end)] as worst,
        string_agg(distinct kind, ' ' order by kind) as kinds
    from findings left join many using (cluster, kind) group by cluster, group_id
), recent as (
    select cluster, group_id, sum(rebalances)::bigint as day, sum(queues_moved)::bigint as moved,
        sum(recent)::bigint as hour
    from hours group by cluster, group_id
)
select g.cluster, g.system, g.group_id, g.state, g.mode, g.strategy, g.generation, g.members, g.queues,
    g.idle_members, g.unassigned_queues, g.spread, g.last_rebalance_at, g.last_rebalance_id,
    g.strategy_verdict, g.verdict_generations, g.verdict_from, g.verdict_reason,
    g.library, g.observed_by, g.protocol, g.epoch, g.assignment_epoch, g.waits, g.member_epochs, g.reconciling,
    g.generation_source,
    coalesce(open.findings, 0) as open_findings, open.kinds as finding_kinds,
    case when g.cluster not in (from ended) then coalesce(recent.hour, 0) end as rebalances_hour,
    case when g.cluster not in (from ended) then coalesce(recent.day, 0) end as rebalances_day,
    case when g.cluster not in (from ended) then coalesce(recent.moved, 0) end as queues_moved_day,
    open.worst, coalesce(g.unassigned_queues, 0) > 0 as is_lacking, g.cluster in (from unknown) as is_unknown
from groups g left join open using (cluster, group_id) left join recent using (cluster, group_id)
"""
# The inputs of a group's health have few values, so the rule is called once for each combination.
_DEPENDS = "select distinct state, worst, is_lacking, is_unknown from seen"
_WITH_HEALTH = """
select seen.* exclude (worst, is_lacking, is_unknown), rule.health from seen join (
    select unnest(?::varchar[]) as state, unnest(?::varchar[]) as worst, unnest(?::boolean[]) as is_lacking,
        unnest(?::boolean[]) as is_unknown, unnest(?::varchar[]) as health
) as rule on seen.state is not distinct from rule.state and seen.worst is not distinct from rule.worst
    and seen.is_lacking = rule.is_lacking and seen.is_unknown = rule.is_unknown
"""
_OTHERS = f"select distinct {', '.join(STATE_COLUMNS)} from seen where state = '{NOT_FOLLOWED}'"
_WITH_STATE = f"""
select seen.*, coalesce(rule.coordinator_state, seen.state) as coordinator_state from seen left join (
    select {", ".join(f"unnest(?) as {name}" for name in STATE_COLUMNS)}, unnest(?::varchar[]) as coordinator_state
) as rule on {" and ".join(f"seen.{name} is not distinct from rule.{name}" for name in STATE_COLUMNS)}
"""
_HOURS = """
select cluster, group_id, epoch_ms(event_time) // {hour} * {hour} as hour, count(*) as rebalances,
    sum(queues_moved)::bigint as queues_moved, (sum(outage_min_ms))::bigint as outage_min_ms,
    (sum(outage_max_ms))::bigint as outage_max_ms,
    count(*) filter (epoch_ms(event_time) >= {first.hour_ms}) as recent
from rebalances where epoch_ms(event_time) >= {first.day_ms} group by all
"""
_TABLES = ("groups", "findings", "rebalances")


def hours(reading: Reading) -> pa.Table:
    """Return the last 24 hours: cluster, group_id, hour (epoch ms), rebalances, queues_moved, outage_min_ms,
    outage_max_ms, recent.

    ``recent`` counts those of the last 60 minutes. Hours are whole ones, so only the end of the first one counts.
    """
    window = last_day(reading)
    first = recent(reading, window)
    columns = ["cluster", "group_id", "event_time", "queues_moved", "outage_min_ms", "outage_max_ms"]

    def compute() -> pa.Table:
        within = {"event_time": Within(window.first_hour_ms, window.until_ms)}
        rows = reading.tables.read("rebalances", columns=columns, where=within)
        return reading.sql(_HOURS.format(hour=HOUR_MS, first=first), {"rebalances": rows})

    return reading.kept(("hours", window.first_hour_ms, first), ["rebalances"], compute)


def overview(reading: Reading) -> pa.Table:
    """Return one row per group: its row of ``groups``, and figures of its findings and the last day's rebalances."""
    many, unknown = widespread(reading), _unknown(reading)
    columns = ["cluster", "group_id", "kind", "severity", "closed_at"]

    def compute() -> pa.Table:
        findings = reading.tables.read("findings", columns=columns, keep=lambda rows: rows["closed_at"].is_null())
        found = {"groups": reading.tables.read("groups"), "findings": findings, "hours": hours(reading)}
        rows = reading.sql(_OVERVIEW, found, [*_places(many), *map(list, unknown)])
        return _with_coordinator_state(reading, _with_health(reading, rows))

    return reading.kept(("overview", *_time(reading), many, unknown), _TABLES, compute)


def _unknown(reading: Reading) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return unknown_clusters(reading), ended_before(reading, last_day(reading).now_ms)


def _with_health(reading: Reading, rows: pa.Table) -> pa.Table:
    depends = reading.sql(_DEPENDS, {"seen": rows}).to_pylist()
    rules = [
        health(
            state=row["state"],
            worst=row["worst"],
            unassigned_queues=row["is_lacking"],
            is_known=not row["is_unknown"],
        )
        for row in depends
    ]
    values = [[row[name] for row in depends] for name in ("state", "worst", "is_lacking", "is_unknown")]
    return reading.sql(_WITH_HEALTH, {"seen": rows}, [*values, rules])


def _with_coordinator_state(reading: Reading, rows: pa.Table) -> pa.Table:
    """Add the state of each group's coordinator; the rule is called only for groups in which it may differ."""
    others = reading.sql(_OTHERS, {"seen": rows}).to_pylist()
    values = [[row[name] for row in others] for name in STATE_COLUMNS]
    return reading.sql(_WITH_STATE, {"seen": rows}, [*values, [coordinator_state(row) for row in others]])


def _time(reading: Reading) -> tuple[int, Recent]:
    """Return the cache key of rows with recent rebalances, in addition to the versions of tables."""
    window = last_day(reading)
    return window.first_hour_ms, recent(reading, window)


def _places(many: Sequence[WidespreadKind]) -> list[list[str]]:
    return [[spread.cluster for spread in many], [spread.kind for spread in many]]


def clusters(reading: Reading) -> pa.Table:
    """Return one row per cluster: its groups, members, groups in trouble, open findings and rebalances.

    The number of groups in trouble is null for an unknown cluster.
    """
    sql = f"""
        with {_MANY}, {_UNKNOWN}, kinds as (
            select cluster, string_agg(kind, ' ' order by kind) as widespread_kinds from many group by cluster
        )
        select cluster, any_value(system) as system, count(*) as groups, sum(members)::bigint as members,
            sum(queues)::bigint as queues,
            case when cluster not in (from unknown) then count(*) filter (health in ('critical', 'warning')) end
                as in_trouble,
            sum(open_findings)::bigint as open_findings, sum(rebalances_hour)::bigint as rebalances_hour,
            sum(rebalances_day)::bigint as rebalances_day, max(last_rebalance_at) as last_rebalance_at,
            any_value(widespread_kinds) as widespread_kinds
        from overview left join kinds using (cluster) group by cluster order by cluster
    """
    many, unknown = widespread(reading), _unknown(reading)
    parameters = [*_places(many), *map(list, unknown)]
    key = ("clusters", *_time(reading), many, unknown)
    return reading.kept(key, _TABLES, lambda: reading.sql(sql, {"overview": overview(reading)}, parameters))
