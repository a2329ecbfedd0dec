"""Dashboard: what happened in a range of time: rebalances by group and bin, and the fleet by cluster and bin."""

from __future__ import annotations

import pyarrow as pa

from dashboard.reading.known_time import cluster_names, known_end
from dashboard.reading.overview import overview
from dashboard.reading.questions import Reading
from dashboard.reading.time_range import TimeRange
from dashboard.reading.window import ended_before, last_day, page_time
from streaming.views.group_health import RESTLESS, RESTLESS_REBALANCES, RESTLESS_WITHIN_MS
from streaming.views.reader import Within

# Kinds of findings that name queues which nobody reads, and queues whose owners do not move.
UNREAD_KINDS = ("queues_unread", "unassigned_queues")
STALLED_KINDS = ("queue_stalled", "member_stalled", "group_stalled")
# The order of groups on the first page: what is wrong, then what is not calm.
CONDITIONS = ("critical", "warning", RESTLESS, "info", "unknown", "ok")
_COLUMNS = ("cluster", "group_id", "event_time", "queues_moved", "outage_min_ms", "outage_max_ms")
_BINS = """
select cluster, group_id, epoch_ms(event_time) // {bin} * {bin} as hour, count(*) as rebalances,
    sum(queues_moved)::bigint as queues_moved, (sum(outage_min_ms))::bigint as outage_min_ms,
    (sum(outage_max_ms))::bigint as outage_max_ms
from rebalances group by all
"""
_COUNTS = """
with timed as (select cluster, group_id, epoch_ms(event_time) as at_ms from rebalances),
near as (
    select *, count(*) over (
        partition by cluster, group_id order by at_ms range between {within} preceding and current row
    ) as peak from timed where at_ms >= {since}
),
inside as (select cluster, group_id, count(*) as rebalances, max(peak) as peak from near group by all),
earlier as (select cluster, group_id, count(*) as rebalances from timed where at_ms < {since} group by all)
select cluster, group_id, coalesce(inside.rebalances, 0) as rebalances, coalesce(inside.peak, 0) as peak,
    coalesce(earlier.rebalances, 0) as earlier
from inside full join earlier using (cluster, group_id)
"""
# A group is not ok where it rebalanced again and again, whatever is usual for it.
_GROUPS = f"""
with unknown as (select unnest(?::varchar[]) as cluster), begun as (select unnest(?::varchar[]) as cluster)
select o.*,
    case when o.cluster not in (from unknown) then coalesce(c.rebalances, 0) end as rebalances_range,
    case when o.cluster in (from begun) then coalesce(c.earlier, 0) end as rebalances_earlier,
    case when o.health = 'ok' and c.peak >= {RESTLESS_REBALANCES} then '{RESTLESS}' else o.health end as condition
from overview as o left join counts as c using (cluster, group_id)
"""
_FIRST = """
select cluster, min(epoch_ms({time}))::bigint as first_ms from found where {time} is not null
group by cluster order by cluster
"""
_FLEET = f"""
with known as (select unnest(?::varchar[]) as cluster, unnest(?::bigint[]) as begin_ms, unnest(?::bigint[]) as end_ms),
bins as (select known.*, unnest(range({{first}}, {{until}}, {{bin}})) as bin_ms from known),
moved as (
    select cluster, hour as bin_ms, sum(rebalances)::bigint as rebalances, sum(outage_min_ms)::bigint as outage_min_ms,
        sum(outage_max_ms)::bigint as outage_max_ms
    from activity group by all
),
standing as (
    select cluster, group_id, list_contains({[*STALLED_KINDS]}, kind) as is_stalled, epoch_ms(opened_at) as opened,
        coalesce(epoch_ms(closed_at), {2**62}) as closed,
        greatest(1, len(coalesce(queues, [])) + coalesce(queues_left_out, 0)) as queues
    from findings
),
by_group as (
    select bins.cluster, bin_ms, group_id, is_stalled, max(queues) as queues
    from bins join standing on bins.cluster = standing.cluster and opened < bin_ms + {{bin}} and closed > bin_ms
    group by all
),
queues as (
    select cluster, bin_ms, sum(queues) filter (not is_stalled)::bigint as unread,
        sum(queues) filter (is_stalled)::bigint as stalled
    from by_group group by all
)
select cluster, bin_ms as hour,
    case when is_known then coalesce(rebalances, 0) end as rebalances,
    case when is_known then coalesce(outage_min_ms, 0) end as outage_min_ms,
    case when is_known then coalesce(outage_max_ms, 0) end as outage_max_ms,
    case when is_known then coalesce(unread, 0) end as unread_queues,
    case when is_known then coalesce(stalled, 0) end as stalled_queues
from (select *, bin_ms <= end_ms and bin_ms + {{bin}} > begin_ms as is_known from bins)
    left join moved using (cluster, bin_ms) left join queues using (cluster, bin_ms)
order by bin_ms, cluster
"""


def bins(reading: Reading, span: TimeRange) -> pa.Table:
    """Return the rebalances of each group by bin: cluster, group_id, hour, rebalances, queues_moved, outage_min_ms,
    outage_max_ms.

    ``hour`` is the beginning of the bin, in epoch ms, as in ``overview.hours``.
    """

    def compute() -> pa.Table:
        within = {"event_time": Within(span.since_ms, span.until_ms)}
        rows = reading.tables.read("rebalances", columns=_COLUMNS, where=within)
        return reading.sql(_BINS.format(bin=span.bin_ms), {"rebalances": rows})

    return reading.kept(("bins", span.since_ms, span.until_ms), ["rebalances"], compute)


def group_counts(reading: Reading, span: TimeRange) -> pa.Table:
    """Return the groups that rebalanced in a range or before it: cluster, group_id, rebalances, earlier, peak.

    ``earlier`` counts those of the equally long span before; ``peak`` is the most within ``RESTLESS_WITHIN_MS``.
    """

    def compute() -> pa.Table:
        within = {"event_time": Within(span.earlier.since_ms, span.until_ms)}
        rows = reading.tables.read("rebalances", columns=_COLUMNS[:3], where=within)
        sql = _COUNTS.format(since=span.since_ms, within=RESTLESS_WITHIN_MS - 1)
        return reading.sql(sql, {"rebalances": rows})

    return reading.kept(("counts", span.since_ms, span.until_ms), ["rebalances"], compute)


def groups_in(reading: Reading, span: TimeRange) -> pa.Table:
    """Return ``overview`` with what each group did in a range: rebalances_range, rebalances_earlier, condition.

    A number is null where the cluster was not known up to the end of the span, or where nothing is known of it as long
    ago. ``condition`` is the group's health, or ``RESTLESS`` instead of ok.
    """
    present, firsts = min(span.until_ms, last_day(reading).now_ms), first_known(reading)
    ends = {name: known_end(reading, name, present) for name in cluster_names(reading)}
    outside = {name for name, end in ends.items() if end is None or end <= span.since_ms}
    outside |= {name for name, first_ms in firsts.items() if first_ms >= span.until_ms}
    unknown = tuple(sorted({*ended_before(reading, span.until_ms), *outside}))
    # A count of the earlier span is whole if something older than it is known.
    begun = tuple(
        name for name, first_ms in firsts.items() if first_ms <= span.earlier.since_ms and name not in outside
    )
    tables = {"overview": overview(reading), "counts": group_counts(reading, span)}
    key = ("groups in", span.since_ms, span.until_ms, unknown, begun, page_time(reading))
    names = ["groups", "findings", "rebalances", "topics"]
    return reading.kept(key, names, lambda: reading.sql(_GROUPS, tables, [list(unknown), list(begun)]))


def first_known(reading: Reading) -> dict[str, int]:
    """Return clusters with the time of the first row about their topics, else their rebalances, epoch ms."""
    found = _first(reading, "topics", "valid_from")
    if set(cluster_names(reading)) - found.keys():
        # Rebalances are many, so they are read only for what no topic shows.
        found = _first(reading, "rebalances", "event_time") | found
    dropped = reading.tables.dropped_before("rebalances")
    return {cluster: max(first_ms, dropped.get(cluster, 0)) for cluster, first_ms in found.items()}


def _first(reading: Reading, table: str, time: str) -> dict[str, int]:
    def compute() -> pa.Table:
        found = reading.tables.read(table, columns=["cluster", time])
        return reading.sql(_FIRST.format(time=time), {"found": found})

    rows = reading.kept(("first", table), [table], compute).to_pylist()
    return {row["cluster"]: row["first_ms"] for row in rows}


def fleet(reading: Reading, span: TimeRange, cluster: str | None = None) -> pa.Table:
    """Return each cluster by bin: cluster, hour, rebalances, outage_min_ms, outage_max_ms, unread_queues,
    stalled_queues.

    ``hour`` is the beginning of the bin, in epoch ms. Numbers of a bin in which nothing was known of a cluster are
    null. Queues are counted by open findings: the most of each group within the bin.

    Args:
        cluster: Only this one; None for all.
    """
    firsts = first_known(reading)
    names = [name for name in cluster_names(reading) if cluster in (None, name)]
    ends = [known_end(reading, name, span.until_ms) or 0 for name in names]
    begins = [firsts.get(name, 0) for name in names]
    sql = _FLEET.format(first=span.first_bin_ms, until=span.until_ms, bin=span.bin_ms)
    key = ("fleet", span.since_ms, span.until_ms, tuple(zip(names, begins, ends, strict=True)))

    def compute() -> pa.Table:
        columns = ("cluster", "group_id", "kind", "opened_at", "closed_at", "queues", "queues_left_out")
        where = {
            "kind": {*UNREAD_KINDS, *STALLED_KINDS},
            "opened_at": Within(until_ms=span.until_ms),
            "closed_at": Within(since_ms=span.first_bin_ms + 1, or_null=True),
        }
        found = reading.tables.read("findings", columns=columns, where=where)
        return reading.sql(sql, {"activity": bins(reading, span), "findings": found}, [names, begins, ends])

    return reading.kept(key, ["rebalances", "findings", "topics"], compute)
