"""Shell: which groups read a topic, and whether a group ever had members."""

from __future__ import annotations

from streaming.tables.schema import Row
from streaming.views.assignments import current_spans
from streaming.views.progress import recent_committers
from streaming.views.reader import Reader


def groups_of_topic(reader: Reader, cluster: str, topic: str) -> list[str]:
    """Return the names of the groups that own queues of a topic now, or have committed there lately; sorted."""
    owners = {span["group_id"] for span in current_spans(reader, {"cluster": cluster, "topic": topic})}
    committers = recent_committers(reader, cluster, topic)
    # A poll that lacks a group shows nothing of its offsets: their rows end without a last one.
    where = {"cluster": cluster, "group_id": committers - owners}
    present = reader.read("groups", columns=["group_id"], where=where)
    return sorted({*owners, *present["group_id"].to_pylist()})


def never_had_members(row: Row) -> bool:
    """Return whether no member of a group was ever observed: it is known by its commits, or as an empty one."""
    return row["state"] == "empty" and row["last_rebalance_at"] is None
