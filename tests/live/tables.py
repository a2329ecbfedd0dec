"""The job's tables as they are now, read without Spark."""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

Row = dict[str, Any]
# By member: the broker and number of each queue.
Owners = dict[str, set[tuple[str, int]]]


def rows_of(tables: Path, name: str) -> list[Row]:
    """Return a table; nothing while it is not there. Who waits looks often: it is read only where a commit came."""
    newest = max((tables / name / "_delta_log").glob("*.json"), default=None)
    return [] if newest is None else [dict(row) for row in _rows(tables / name, newest, newest.stat().st_mtime_ns)]


@lru_cache(maxsize=16)
def _rows(table: Path, newest: Path, written_ns: int) -> list[Row]:
    return DeltaTable(str(table)).to_pyarrow_table().to_pylist()


def owners(tables: Path, cluster: str, group: str, topic: str, origin: str) -> Owners:
    """Return who holds which queues of a topic."""
    held: Owners = defaultdict(set)
    for row in rows_of(tables, "assignments"):
        of = (row["cluster"], row["group_id"], row["topic"], row["origin"], row["valid_to"])
        if of == (cluster, group, topic, origin, None):
            held[row["member_id"]].add((row["broker"], row["queue_id"]))
    return dict(held)


def membership(tables: Path, cluster: str, group: str) -> list[str]:
    """Return why a group's members changed. Topics that become known after that do not count."""
    found = [row for row in rows_of(tables, "rebalances") if (row["cluster"], row["group_id"]) == (cluster, group)]
    causes = [row["trigger"] for row in sorted(found, key=lambda row: row["event_time"])]
    return [cause for cause in causes if cause != "queue_count_changed"]
