"""Dashboard: the lag of groups as a metric, over queues that moved within the last hour of the tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from dashboard.metrics.group_labels import GroupLabels
from dashboard.metrics.known_sources import known_rows
from streaming.tables.arrow_rows import from_arrow_columns
from streaming.views.progress import is_left_over, recent_rows
from streaming.views.reader import Reader

_GROUP = ["cluster", "group_id"]
_QUEUE = [*_GROUP, "topic", "broker", "queue_id"]


_ByGroup: TypeAlias = dict[tuple[str, ...], float]


def lag_by_group(reader: Reader, groups: GroupLabels, unknown: Collection[str] = ()) -> tuple[_ByGroup, _ByGroup]:
    """Return for each group, under its labels, the sum of the newest lags of its queues, and how many are not known.

    Commits of topics to which no member subscribes are left out.

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
    # Arrow sums them, because there are far more queues than topics. A group without an observed lag has none.
    found = (
        known_rows(found, unknown)
        .group_by(["cluster", "group_id", "topic"])
        .aggregate([("lag_last", "sum"), ("lag_last", "count", pc.CountOptions(mode="only_null"))])
    )
    sums: _ByGroup = defaultdict(float)
    unknown_queues: _ByGroup = defaultdict(float)
    wanted = _subscribed_topics(reader)
    columns = ["cluster", "group_id", "topic", "lag_last_sum", "lag_last_count"]
    for cluster, group, topic, lag, queues in zip(*from_arrow_columns(found, columns), strict=True):
        if is_left_over(topic, wanted.get((cluster, group))):
            continue
        key = groups.of(cluster, group)
        unknown_queues[key] += queues
        if lag is not None:
            sums[key] += lag
    return sums, unknown_queues


def _subscribed_topics(reader: Reader) -> dict[tuple[str, str], frozenset[str] | None]:
    """Return the topics to which the present members of each group subscribe."""
    names = [*_GROUP, "subscriptions", "left_at"]
    present = reader.read("members", columns=names, keep=lambda found: found["left_at"].is_null())
    # Arrow unites the topics, because there are far more members than topics.
    of_members = present.select(_GROUP)
    subscriptions = present["subscriptions"].combine_chunks()
    of_topics = of_members.take(pc.list_parent_indices(subscriptions)).append_column(
        "topic", pc.list_flatten(subscriptions)
    )
    by_group: dict[tuple[str, str], set[str]] = defaultdict(set)
    for cluster, group, topic in _distinct(of_topics):
        by_group[cluster, group].add(topic)
    found: dict[tuple[str, str], frozenset[str] | None] = {name: frozenset(by_group[name]) for name in by_group}
    is_unknown = pc.fill_null(pc.equal(pc.list_value_length(subscriptions), 0), True)
    # Members of streams groups own tasks, which do not show what they read.
    streams = reader.read("groups", columns=_GROUP, where={"protocol": "streams"})
    unknown = [*_distinct(of_members.filter(is_unknown)), *_distinct(streams)]
    return found | dict.fromkeys(unknown)


def _distinct(rows: pa.Table) -> list[tuple[Any, ...]]:
    distinct = rows.group_by(rows.column_names).aggregate([])
    return list(zip(*(distinct[name].to_pylist() for name in rows.column_names), strict=True))
