"""Shell: the clusters that the tables know, and when the first and the newest row about each was dated."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from streaming.views.reader import Reader, distinct

# Where the first knowledge of a cluster leaves a row.
_BEGINNINGS = (
    ("groups", "last_rebalance_at"),
    ("topics", "valid_from"),
    ("members", "joined_at"),
    ("assignments", "valid_from"),
    ("rebalances", "event_time"),
    ("findings", "opened_at"),
)


def known_clusters(reader: Reader, group: str | None = None) -> set[str]:
    """Return the clusters that the tables know now, including those without a group; with a group, its own."""
    if group is not None:
        return distinct(reader, ("groups",), "cluster", {"group_id": group})
    return distinct(reader, ("groups", "topics", "findings"), "cluster")


def newest_by_cluster(reader: Reader) -> dict[str, int | None]:
    """Return each of ``known_clusters`` with the event time of its newest rebalance or finding, epoch ms, or None."""
    newest = _times(reader, (("groups", "last_rebalance_at"), ("findings", "opened_at")))
    return {name: max(newest.get(name, ()), default=None) for name in known_clusters(reader)}


def first_by_cluster(reader: Reader) -> dict[str, int]:
    """Return clusters with the event time of the first row about each, epoch ms."""
    return {name: min(times) for name, times in _times(reader, _BEGINNINGS).items()}


def _times(reader: Reader, places: Iterable[tuple[str, str]]) -> dict[str, list[int]]:
    """Return the first and the last time of each cluster in columns of tables."""
    found: dict[str, list[int]] = {}
    for table, column in places:
        rows = reader.read(table, columns=["cluster", column])
        times = rows[column].cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64())
        # There are few clusters. Arrow's `group_by` would import pandas, and so would a text in place of the scalar.
        for cluster in rows["cluster"].unique():
            bounds = pc.min_max(times.filter(pc.equal(rows["cluster"], cluster))).as_py()
            if cluster.is_valid and bounds["min"] is not None:
                found.setdefault(cluster.as_py(), []).extend(bounds.values())
    return found
