"""Dashboard: replays of many groups, from the tables that they wrote."""

from __future__ import annotations

import pyarrow as pa

from dashboard.reading.listing_query import plain_rows
from dashboard.reading.questions import Reading
from streaming.tables.errors import NotFoundError
from streaming.tables.replay_tables import REPLAY_GROUPS, REPLAYS
from streaming.tables.schema import Row

# Means and estimates over the groups that a policy has figures of, and of what was recorded of the same groups.
_SUMS = """
with recorded as (select * from figures where policy is null and rebalances is not null)
select f.policy, avg(f.spread) as spread, avg(r.spread) as recorded_spread,
    case when count(f.queues_stopped) = count(*)
        then sum(f.queues_stopped * r.move_pause_ms + coalesce(f.waiting_pause_ms, 0))::bigint end as pause,
    sum(r.queues_stopped * r.move_pause_ms)::bigint as recorded_pause
from figures as f join recorded as r using (cluster, group_id)
where f.policy is not null and f.rebalances is not null group by f.policy
"""
_COLUMNS = (
    *("cluster", "group_id", "policy", "rebalances", "queues_stopped", "waiting_pause_ms", "spread", "move_pause_ms"),
)


def replay_runs(reading: Reading, replay_id: str = "") -> list[Row]:
    """Return the rows of ``replays`` that are finished, newest first, or one of them.

    Raises:
        NotFoundError: There is no such one.
    """
    where = {"replay_id": replay_id or None}
    found = [row for row in reading.tables.rows(REPLAYS.name, where=where) if row["finished_at"] is not None]
    if replay_id and not found:
        raise NotFoundError(f"there is no finished replay {replay_id}")
    return sorted(found, key=lambda row: (row["started_at"], row["replay_id"]), reverse=True)


def run_sums(reading: Reading, run: Row) -> list[Row]:
    """Return the sums of a replay by policy, with what they lack: spread, and queue-pause estimated alike in each.

    ``pause`` and ``recorded_pause`` are queues that stood still times the median of one, in groups where it is known;
    ``pause`` also has what they stand still while rebalances wait for silent members.
    """
    name = run["replay_id"]

    def compute() -> pa.Table:
        rows = reading.tables.read(REPLAY_GROUPS.name, columns=_COLUMNS, where={"replay_id": name})
        return reading.sql(_SUMS, {"figures": rows})

    rows = plain_rows(reading.kept(("replay sums", name), (REPLAY_GROUPS.name,), compute))
    more = {row["policy"]: row for row in rows}
    nothing = dict.fromkeys(("spread", "recorded_spread", "pause", "recorded_pause"))
    return [row | nothing | more.get(row["policy"], {}) for row in run["sums"] or ()]
