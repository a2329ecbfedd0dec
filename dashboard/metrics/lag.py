"""Dashboard: the lag of groups as a metric, over queues that moved within the last hour of the tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import TypeAlias

import pyarrow.compute as pc

from dashboard.metrics.group_labels import GroupLabels
from dashboard.metrics.known_sources import known_rows
from streaming.tables.arrow_rows import from_arrow_columns
from streaming.views.progress import recent_rows
from streaming.views.reader import Reader

_QUEUE = ["cluster", "group_id", "topic", "broker", "queue_id"]


_ByGroup: TypeAlias = dict[tuple[str, ...], float]


def lag_by_group(reader: Reader, groups: GroupLabels, unknown: Collection[str] = ()) -> tuple[_ByGroup, _ByGroup]:
    """Return for each group, under its labels, the sum of the newest lags of its queues, and how many are not known.

    Args:
        unknown: Clusters that are left out.
    """
    recent = recent_rows(reader)
    if recent is None:
        return {}, {}
    rows = reader.read("queue_progress", columns=[*_QUEUE, "event_time", "lag"], where={"event_time": recent})
    # The last row of each queue counts, in the order of the rows, which needs one thread.
    newest = rows.sort_by("event_time").group_by(_QUEUE, use_threads=False)
    found = newest.aggregate([("lag", "last", pc.ScalarAggregateOptions(skip_nulls=False))])
    # Arrow sums them, because there are far more queues than groups. A group without an observed lag has none.
    found = (
        known_rows(found, unknown)
        .group_by(["cluster", "group_id"])
        .aggregate([("lag_last", "sum"), ("lag_last", "count", pc.CountOptions(mode="only_null"))])
    )
    sums: _ByGroup = defaultdict(float)
    unknown_queues: _ByGroup = defaultdict(float)
    columns = ["cluster", "group_id", "lag_last_sum", "lag_last_count"]
    for cluster, group, lag, queues in zip(*from_arrow_columns(found, columns), strict=True):
        key = groups.of(cluster, group)
        unknown_queues[key] += queues
        if lag is not None:
            sums[key] += lag
    return sums, unknown_queues
