"""Dashboard: the owners of one queue, now or at a time, and details of each owner."""

from __future__ import annotations

from dashboard.reading.listing_query import piece
from dashboard.reading.listings import ASSIGNMENTS
from dashboard.reading.questions import ALL_ROWS, Reading
from streaming.tables.schema import Row
from streaming.terminal.format import queue_name, time_text
from streaming.views.assignments import SHARED_BY_MESSAGE
from streaming.views.name_checks import require_queue, require_topic
from streaming.views.reader import Reader


def owners_of_queue(
    reading: Reading,
    topic: str,
    queue_id: int,
    *,
    group: str | None = None,
    cluster: str | None = None,
    broker: str | None = None,
    at_ms: int | None = None,
) -> list[Row]:
    """Return the owners of a queue at a time (None for now): rows of assignments, with the owner's client and host.

    For a topic that is shared by message, every member that shares it is returned.
    """
    chosen = {"topic": topic, "group_id": group or "", "cluster": cluster or ""}
    chosen |= {"open": "yes"} if at_ms is None else {"at": time_text(at_ms)}
    spans = piece(reading, ASSIGNMENTS, chosen, limit=ALL_ROWS).rows
    found = [
        span for span in spans if span["queue_id"] in (queue_id, SHARED_BY_MESSAGE) and broker in (None, span["broker"])
    ]
    if not found:
        return []
    owners = {span["member_id"] for span in found}
    sessions = reading.tables.rows("members", where={"cluster": cluster, "group_id": group, "member_id": owners})
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


def why_no_owner(
    reader: Reader,
    topic: str,
    queue_id: int,
    *,
    group: str | None = None,
    cluster: str | None = None,
    broker: str | None = None,
    at_ms: int | None = None,
) -> tuple[str, bool]:
    """Return that nobody owns a queue, or that it is not known who does, as a sentence; and whether it is known.

    Raises:
        NotFoundError: There is no such topic or queue.
    """
    require_topic(reader, topic, cluster=cluster)
    name = queue_name(topic, broker, queue_id)
    for where, dropped_ms in spans_dropped_before(reader, cluster, at_ms):
        return (
            f"the owner of {name} at {time_text(at_ms or 0)} is not known: spans of cluster {where} that ended before"
            f" {time_text(dropped_ms)} were dropped (retention.assignments_hours)"
        ), False
    require_queue(reader, topic, queue_id, cluster=cluster, broker=broker)
    when, owns = ("now", "owns") if at_ms is None else (f"at {time_text(at_ms)}", "owned")
    owner = "no group" if group is None else f"no member of group {group}"
    return f"{owner} {owns} {name} {when}", True


def spans_dropped_before(reader: Reader, cluster: str | None, at_ms: int | None) -> list[tuple[str, int]]:
    """Return the clusters, and the times before which their spans were dropped, if an owner's span may be missing."""
    dropped = reader.dropped_before("assignments").items()
    return sorted((name, ms) for name, ms in dropped if cluster in (None, name) and at_ms is not None and at_ms < ms)
