"""Shell: members, each with its computed and its reported queues."""

from __future__ import annotations

from streaming.tables.schema import Row
from streaming.views.assignments import assignments
from streaming.views.reader import Reader, holds_at


def members(
    reader: Reader, *, group: str | None = None, cluster: str | None = None, at_ms: int | None = None
) -> list[Row]:
    """Return the members at a time (None = now), by cluster, group and id.

    Returns:
        Rows of ``members`` with ``computed`` and ``reported``: lists of {topic, broker, queue_id}; ``reported`` is
        None where no member reports, and ``agrees`` then too.
    """
    keep = holds_at("joined_at", "left_at", at_ms)
    found = reader.rows("members", where={"cluster": cluster, "group_id": group}, keep=keep)
    found.sort(key=lambda row: (row["cluster"], row["group_id"], row["member_id"], row["joined_at"]))
    held: dict[tuple[str, str, str, str], list[Row]] = {}
    reporting: set[tuple[str, str]] = set()
    for span in assignments(reader, group=group, cluster=cluster, at_ms=at_ms):
        key = (span["cluster"], span["group_id"], span["member_id"], span["origin"])
        held.setdefault(key, []).append({name: span[name] for name in ("topic", "broker", "queue_id")})
        if span["origin"] == "reported":
            reporting.add(key[:2])
    for row in found:
        member = (row["cluster"], row["group_id"], row["member_id"])
        row["computed"] = held.get((*member, "computed"), [])
        row["reported"] = held.get((*member, "reported"), []) if member[:2] in reporting else None
        row["agrees"] = None if row["reported"] is None else row["computed"] == row["reported"]
    return found
