"""Shell: what the tables have of one group. No Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, Protocol

from streaming.tables.errors import NotFoundError
from streaming.tables.schema import Row
from streaming.terminal.format import time_text
from udfs.model.events import QueueInfo
from udfs.model.queues import Queues, numbered

# A history needs all of these.
NEEDED: Final = ("rebalances", "members", "assignments", "topics")


class UnknownPastError(NotFoundError):
    """The tables lack what a history needs."""


class PastTables(Protocol):
    """What a history needs of a reader of the tables."""

    def rows(self, name: str, *, where: Mapping[str, Any] | None = None) -> list[Row]:
        """Return the rows of a table that match."""

    def dropped_before(self, name: str) -> Mapping[str, int]:
        """Return for each cluster the time before which ended rows of a table may be missing."""


class GroupRows(NamedTuple):
    """The rows of one group and of the topics that its members have subscribed to, each in the order of their times.

    Attributes:
        begins_at: The time of the rebalance after which the history begins; None if it begins with the group.
        sessions: Its rows of ``members``. spans: Its rows of ``assignments``.
    """

    cluster: str
    group_id: str
    system: str
    begins_at: int | None
    rebalances: list[Row]
    sessions: list[Row]
    topics: list[Row]
    spans: list[Row]

    @property
    def is_reported(self) -> bool:
        """Return whether a coordinator reported its generations; otherwise the monitor counted them."""
        return bool(self.rebalances) and self.rebalances[0]["generation_source"] == "reported"

    def owners_at(self, time_ms: int, origin: str) -> dict[str, list[Row]]:
        """Return the spans of each member at a time."""
        held: dict[str, list[Row]] = {}
        for span in self.spans:
            if span["origin"] == origin and is_at(span, "valid_from", "valid_to", time_ms):
                held.setdefault(span["member_id"], []).append(span)
        return held


def group_rows(reader: PastTables, cluster: str, group_id: str, since_ms: int | None = None) -> GroupRows:
    """Return what the tables have of a group.

    Args:
        since_ms: The history begins after the first rebalance from then on; None: as early as the tables allow.

    Raises:
        UnknownPastError: It has no rebalances from which a history could begin.
    """
    where: dict[str, Any] = {"cluster": cluster, "group_id": group_id}
    rebalances = reader.rows("rebalances", where=where)
    if not rebalances:
        raise UnknownPastError(f"the tables have no rebalances of group {group_id}")
    rebalances.sort(key=lambda row: (row["event_time"], row["generation"]))
    begins_at = _begin(reader, cluster, rebalances, since_ms)
    sessions = reader.rows("members", where=where)
    sessions.sort(key=lambda row: (row["joined_at"], row["member_id"]))
    named = {topic for session in sessions for topic in _topics_of(session)}
    topics = reader.rows("topics", where={"cluster": cluster, "topic": named}) if named else []
    topics.sort(key=lambda row: (row["topic"], row["valid_from"]))
    spans = reader.rows("assignments", where=where)
    spans.sort(key=lambda row: (row["valid_from"], row["topic"], row["broker"] or "", row["queue_id"]))
    return GroupRows(cluster, group_id, rebalances[0]["system"], begins_at, rebalances, sessions, topics, spans)


def _begin(reader: PastTables, cluster: str, rebalances: list[Row], since_ms: int | None) -> int | None:
    """Return the time of the rebalance after which a history begins; None if it begins with the group."""
    since = [since_ms, *(reader.dropped_before(table).get(cluster) for table in NEEDED)]
    known_from = max((time_ms for time_ms in since if time_ms is not None), default=0)
    first = rebalances[0]
    is_created = any(cause["kind"] == "group_created" for cause in first["triggers"])
    if is_created and first.get("settings") is not None and first["event_time"] >= known_from:
        return None
    for row in rebalances:
        # Releases up to 0.2.0 recorded no settings, and not what members subscribed to earlier.
        if row.get("settings") is not None and row["event_time"] >= known_from:
            return int(row["event_time"])
    group_id = first["group_id"]
    if known_from:
        since_text = time_text(known_from)
        raise UnknownPastError(
            f"the tables have no rebalance of group {group_id} with what was set for it, since {since_text}"
        )
    raise UnknownPastError(
        f"the rebalances of group {group_id} were recorded by a release that did not keep what was set for it"
    )


def is_at(row: Mapping[str, Any], begin: str, end: str, time_ms: int) -> bool:
    """Return whether a span includes a time."""
    ended = row.get(end)
    return bool(row[begin] <= time_ms and (ended is None or time_ms < ended))


def queues_of_row(row: Row) -> Queues:
    """Return the queues of a row of ``topics``."""
    listed: Iterable[Mapping[str, Any]] = row["queues"] or ()
    found = tuple(
        QueueInfo(queue["queue_id"], queue["broker"], racks=tuple(queue["racks"]) if queue["racks"] else None)
        for queue in listed
    )
    return found or numbered(row["queue_count"])


def _topics_of(session: Row) -> set[str]:
    lists = [session["subscriptions"], *(former["subscriptions"] for former in session.get("earlier") or ())]
    return {topic for topics in lists for topic in topics or ()}
