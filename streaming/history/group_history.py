"""Shell: a group's history, from the tables: the events of the contract that made it. No Spark.

Only the tables that are kept longest are read, and never the journal. What a table does not hold is not guessed: see
``identity``, which says of each generation whether the history gives it again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from streaming.history.coordinator_events import coordinator_events
from streaming.history.group_rows import GroupRows, UnknownPastError, queues_of_row
from streaming.history.member_events import MemberEvents, due
from streaming.history.named_causes import NamedCauses
from streaming.history.state_at_time import state_at
from streaming.tables.schema import Row
from udfs.group.replay.replay import History
from udfs.group.state.group import POLLS
from udfs.model.events import GroupSettings, MemberJoined, QueueRef, TopicQueues, event_fields
from udfs.model.group_api import DueEvent
from udfs.model.systems import System, is_server_side


class FoundHistory(NamedTuple):
    """A group's history.

    Attributes:
        undecided: Its sessions that no rebalance names; they are no part of the history.
    """

    history: History
    undecided: list[Row]


def found_history(rows: GroupRows, settle_ms: int) -> FoundHistory:
    """Return the events that made a group.

    Args:
        settle_ms: The setting of this name under which it was decided.

    Raises:
        UnknownPastError: It is of a kind that has no history, or a table lacks its rows.
    """
    _require_all(rows)
    is_of_records = any(session.get("protocol") for session in rows.sessions)
    if is_of_records or any(is_server_side(row["strategy"]) for row in rows.rebalances):
        raise UnknownPastError(f"group {rows.group_id} uses a newer protocol of Kafka: such groups have no history yet")
    if any(row["observed_by"] == POLLS for row in rows.rebalances):
        raise UnknownPastError(f"group {rows.group_id} is known by polls alone: such groups have no history yet")
    sources = {row["generation_source"] for row in rows.rebalances}
    if len(sources) > 1:
        raise UnknownPastError(
            f"the generations of group {rows.group_id} were reported at some times, and counted at others: such groups"
            " have no history yet"
        )
    causes = NamedCauses(rows.rebalances)
    members = None
    if "reported" in sources:
        events = [*coordinator_events(rows, rows.system, causes)]
    else:
        members = MemberEvents(rows, rows.system, causes, settle_ms)
        events = [
            *_setting_events(rows, rows.system, causes),
            *_follow_ups(rows, rows.system, causes),
            *members.events(),
        ]
    if rows.begins_at is not None:
        begins_at = rows.begins_at
        events = [found for found in events if found.event.event_time > begins_at]
        events += state_at(rows, rows.system, begins_at)
    events += _topic_events(rows, rows.system, causes)
    events.sort(key=lambda found: found.event.event_time)
    history = History(cluster=rows.cluster, group_id=rows.group_id, system=rows.system, events=tuple(events))
    return FoundHistory(history, [] if members is None else members.undecided)


def _require_all(rows: GroupRows) -> None:
    """Refuse a group of whose members, topics or owners a table has no row: its history would be an empty group's."""
    since = rows.begins_at or 0
    counted = {
        "members": (rows.sessions, ("members_before", "members_after")),
        "topics": (rows.topics, ("queues_before", "queues_after")),
        "assignments": (rows.spans, ("queues_assigned", "queues_moved", "queues_revoked")),
    }
    for table, (found, names) in counted.items():
        if not found and any(row[name] for row in rows.rebalances if row["event_time"] >= since for name in names):
            raise UnknownPastError(
                f"the table {table} has no rows for group {rows.group_id}, but its rebalances count some: rows were"
                " deleted"
            )


def _topic_events(rows: GroupRows, system: System, causes: NamedCauses) -> Iterator[DueEvent]:
    kinds = ("queue_count_changed",)
    for place, row in enumerate(rows.topics):
        following = rows.topics[place + 1] if place + 1 < len(rows.topics) else None
        topic, since, until = row["topic"], row["valid_from"], row.get("valid_to")
        event = TopicQueues(
            **event_fields(system, rows.cluster, since),
            topic=topic,
            queues=queues_of_row(row),
            topic_id=row.get("topic_id"),
        )
        yield due(event, causes.take(kinds, since, topic=topic), topic)
        is_followed = following is not None and (following["topic"], following["valid_from"]) == (topic, until)
        if until is not None and not is_followed:
            deleted = TopicQueues(**event_fields(system, rows.cluster, until), topic=topic, queue_count=0)
            yield due(deleted, causes.take(kinds, until, topic=topic), topic)


def _setting_events(rows: GroupRows, system: System, causes: NamedCauses) -> Iterator[DueEvent]:
    """Yield the group's settings as its rebalances read them; those of one settling time have the rebalance's time."""
    now: dict[str, Any] = {}
    mode = "clustering"
    for row in rows.rebalances:
        if any(cause["kind"] == "group_created" for cause in row["triggers"]):
            now, mode = {}, "clustering"
        settings = json.loads(row.get("settings") or "{}")
        changed = {name: value for name, value in settings.items() if value != now.get(name)}
        if changed or row["mode"] != mode:
            event = GroupSettings(
                **event_fields(system, rows.cluster, row["event_time"]),
                group=rows.group_id,
                mode=None if row["mode"] == mode else row["mode"],
                strategy=settings.get("strategy") if changed.keys() & {"strategy", "inferred"} else None,
                strategy_settings=changed.get("settings"),
                inferred=bool(settings.get("inferred")),
            )
            yield due(event, causes.take(("strategy_changed", "settings_changed"), row["event_time"]))
        now, mode = settings, row["mode"]


def _follow_ups(rows: GroupRows, system: System, causes: NamedCauses) -> Iterator[DueEvent]:
    """Yield the second halves of cooperative rebalances: a member joins again, with the queues that it has kept."""
    for row in rows.rebalances:
        time_ms = row["event_time"]
        cause = causes.take(("cooperative_follow_up",), time_ms, time_ms + 1)
        if cause is None:
            continue
        joining = {named["member_id"] for named in row["triggers"]}
        owners = rows.owners_at(time_ms - 1, "computed")
        staying = [
            session["member_id"]
            for session in rows.sessions
            if session["joined_at"] < time_ms
            and (session.get("left_at") or time_ms + 1) > time_ms
            and session["member_id"] not in joining
        ]
        if staying:
            kept = owners.get(staying[0], [])
            owned = tuple(QueueRef(span["topic"], span["queue_id"], span["broker"]) for span in kept)
            event = MemberJoined(
                **event_fields(system, rows.cluster, time_ms), group=rows.group_id, member_id=staying[0], owned=owned
            )
            yield due(event, cause, staying[0])
