"""Shell: the owners of queues, now or at a time."""

from __future__ import annotations

from streaming.tables.schema import Row
from streaming.views.reader import Reader, holds_at

ORIGINS = ("computed", "reported")
# Such a queue has no single owner: its topic is shared by message.
SHARED_BY_MESSAGE = -1


def assignments(
    reader: Reader,
    *,
    group: str | None = None,
    cluster: str | None = None,
    topic: str | None = None,
    member: str | None = None,
    origin: str | None = None,
    at_ms: int | None = None,
) -> list[Row]:
    """Return the spans that are open at a time (None = now): valid_from <= T < valid_to; by group, queue and owner."""
    wanted = {"cluster": cluster, "group_id": group, "topic": topic, "member_id": member, "origin": origin}
    found = reader.rows("assignments", where=wanted, keep=holds_at("valid_from", "valid_to", at_ms))
    return sorted(found, key=_place)


def _place(span: Row) -> tuple[object, ...]:
    queue = (span["topic"], span["broker"] or "", span["queue_id"])
    return span["cluster"], span["group_id"], *queue, span["origin"], span["member_id"], span["valid_from"]


def who_owned(
    reader: Reader,
    topic: str,
    queue_id: int,
    *,
    group: str | None = None,
    cluster: str | None = None,
    broker: str | None = None,
    at_ms: int | None = None,
) -> list[Row]:
    """Return the owners of a queue at a time (None = now): spans, with the owner's client, host and instance.

    A topic that is shared by message answers with every member that shares it.
    """
    found = [
        span
        for span in assignments(reader, group=group, cluster=cluster, topic=topic, at_ms=at_ms)
        if span["queue_id"] in (queue_id, SHARED_BY_MESSAGE) and broker in (None, span["broker"])
    ]
    if not found:
        return []
    owners = {span["member_id"] for span in found}
    sessions = reader.rows("members", where={"cluster": cluster, "group_id": group, "member_id": owners})
    sessions.sort(key=lambda row: row["joined_at"])
    for span in found:
        owner = _session_at(sessions, span, at_ms)
        span |= {name: owner.get(name) for name in ("client_id", "host", "rack")}
        span["instance_id"] = span.get("instance_id") or owner.get("instance_id")
    return found


def _session_at(sessions: list[Row], span: Row, at_ms: int | None) -> Row:
    """Return the owner's last session that had started by then."""
    key = ("cluster", "group_id", "member_id")
    of_owner = [session for session in sessions if all(session[name] == span[name] for name in key)]
    begun = [session for session in of_owner if at_ms is None or session["joined_at"] <= at_ms]
    return begun[-1] if begun else {}


def spans_dropped_before(reader: Reader, cluster: str | None, at_ms: int | None) -> list[tuple[str, int]]:
    """Return the clusters, and the times before which their spans were dropped, where an owner at a time may be one."""
    dropped = reader.dropped_before("assignments").items()
    return sorted((name, ms) for name, ms in dropped if cluster in (None, name) and at_ms is not None and at_ms < ms)
