"""Dashboard: the groups that rebalanced most, by hour of the last day, or by bin of a range."""

from __future__ import annotations

import pyarrow as pa

from dashboard.reading.activity import bins
from dashboard.reading.overview import hours
from dashboard.reading.questions import Reading
from dashboard.reading.time_range import TimeRange

# A heat map and its table show at most this many groups.
BUSIEST = 40
_WANTED = "select * from hours where (? is null or cluster = ?) and (? is null or group_id = ?)"


def churn_rows(
    reading: Reading, *, cluster: str | None = None, group: str | None = None, span: TimeRange | None = None
) -> int:
    """Return the number of rows that ``churn`` has for all groups."""
    sql = f"select count(*) as n from ({_WANTED})"
    count: int = reading.sql(sql, _hours(reading, span), [cluster, cluster, group, group])["n"][0].as_py()
    return count


def churn(
    reading: Reading,
    *,
    cluster: str | None = None,
    group: str | None = None,
    span: TimeRange | None = None,
    limit: int = BUSIEST,
) -> pa.Table:
    """Return the busiest groups' rebalances for each hour: cluster, group_id, hour, rebalances, queues_moved, outages.

    Args:
        span: By bins of this range, of which ``hour`` is the beginning; None for the hours of the last day.
    """
    sql = f"""
        with wanted as ({_WANTED}),
        busiest as (
            select cluster, group_id, sum(rebalances) as total from wanted group by all
            order by total desc, cluster, group_id limit ?
        )
        select cluster, group_id, hour, rebalances, queues_moved, outage_min_ms, outage_max_ms
        from wanted join busiest using (cluster, group_id) order by total desc, cluster, group_id, hour
    """
    return reading.sql(sql, _hours(reading, span), [cluster, cluster, group, group, limit])


def churning(reading: Reading, *, cluster: str | None = None, span: TimeRange | None = None) -> int:
    """Return the number of groups that rebalanced within the last day, or within a range."""
    sql = """
        select count(*) as groups from (select distinct cluster, group_id from hours where ? is null or cluster = ?)
    """
    (row,) = reading.sql(sql, _hours(reading, span), [cluster, cluster]).to_pylist()
    return int(row["groups"])


def _hours(reading: Reading, span: TimeRange | None) -> dict[str, pa.Table]:
    return {"hours": hours(reading) if span is None else bins(reading, span)}
