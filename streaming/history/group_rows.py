"""Shell: what the tables have of one group, from its first rebalance on. No Spark."""

from __future__ import annotations

import bisect
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from streaming.tables.errors import NotFoundError
from streaming.tables.schema import Row
from streaming.terminal.format import time_text
from streaming.views.reader import Reader
from udfs.model.events import QueueInfo
from udfs.model.member_fields import SHOWN
from udfs.model.queues import Queues, numbered

# A history needs each of these from the group's first rebalance on.
_NEEDED: Final = ("rebalances", "members", "assignments", "topics")
_LISTS: Final = ("subscriptions", "strategies")


class UnknownPastError(NotFoundError):
    """The tables lack what a history needs."""


class GroupRows(NamedTuple):
    """The rows of one group and of the topics that its members have subscribed to, each in the order of their times.

    Attributes:
        sessions: Its rows of ``members``. spans: Its rows of ``assignments``.
    """

    cluster: str
    group_id: str
    system: str
    rebalances: list[Row]
    sessions: list[Row]
    topics: list[Row]
    spans: list[Row]

    def owners_at(self, time_ms: int, origin: str) -> dict[str, list[Row]]:
        """Return the spans of each member at a time."""
        held: dict[str, list[Row]] = {}
        for span in self.spans:
            if span["origin"] == origin and is_at(span, "valid_from", "valid_to", time_ms):
                held.setdefault(span["member_id"], []).append(span)
        return held


def group_rows(reader: Reader, cluster: str, group_id: str) -> GroupRows:
    """Return what the tables have of a group.

    Raises:
        UnknownPastError: It has no rebalances, or retention dropped some of its past.
    """
    where: dict[str, Any] = {"cluster": cluster, "group_id": group_id}
    rebalances = reader.rows("rebalances", where=where)
    if not rebalances:
        raise UnknownPastError(f"the tables have no rebalances of group {group_id}")
    rebalances.sort(key=lambda row: (row["event_time"], row["generation"]))
    first = rebalances[0]
    if not any(cause["kind"] == "group_created" for cause in first["triggers"]):
        dropped = [reader.dropped_before(table).get(cluster) for table in _NEEDED]
        known = max((before for before in dropped if before is not None), default=first["event_time"])
        raise UnknownPastError(
            f"group {group_id} is older than its first rebalance in the tables, at {time_text(known)}: what it was like"
            " before that is not known"
        )
    sessions = reader.rows("members", where=where)
    sessions.sort(key=lambda row: (row["joined_at"], row["member_id"]))
    named = {topic for session in sessions for topic in _topics_of(session)}
    topics = reader.rows("topics", where={"cluster": cluster, "topic": named}) if named else []
    topics.sort(key=lambda row: (row["topic"], row["valid_from"]))
    spans = reader.rows("assignments", where=where)
    return GroupRows(cluster, group_id, first["system"], rebalances, sessions, topics, spans)


def is_at(row: Mapping[str, Any], begin: str, end: str, time_ms: int) -> bool:
    """Return whether a span includes a time."""
    ended = row.get(end)
    return bool(row[begin] <= time_ms and (ended is None or time_ms < ended))


def description(session: Row, time_ms: int) -> dict[str, Any]:
    """Return the fields of a member's description as of a time within its session."""
    fields: dict[str, Any] = {name: session.get(name) for name in SHOWN}
    earlier = session.get("earlier") or []
    place = bisect.bisect_right(earlier, time_ms, key=lambda former: former["until_ms"])
    if place < len(earlier):
        fields |= {name: value for name, value in earlier[place].items() if name != "until_ms"}
    settings = fields["strategy_settings"]
    fields |= {name: None if fields[name] is None else tuple(fields[name]) for name in _LISTS}
    return fields | {"strategy_settings": None if settings is None else json.loads(settings)}


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
