"""A history whose events came far beyond the lateness ends as if in order, except where rulings allow otherwise."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from tests.model.check import Batches, single_events, some_batches
from tests.model.conditions import Conditions
from tests.model.core_tables import core_tables
from tests.model.disturbances import History, delay_many
from tests.model.histories import history
from tests.model.member import TIMEOUTS
from tests.model.reference import model_tables
from tests.model.rows import Tables
from tests.model.times import LATENESS_MS, T0, Event

_FEATURES = frozenset(
    {
        "statics", "polls", "settings", "deletes", "late_topics", "describes", "repeats", "brokers", "disorder",
        "unknown", "shrink", "settles", "reported",
    }
)  # fmt: skip
_SIGNS = ("member_joined", "heartbeat", "group_snapshot", "group_settings")
Ends = dict[tuple[Any, ...], Any]


def late_history(seed: int) -> History:
    """Return the history of a seed whose events come up to a minute late, and whose clocks go on to its end."""
    made = history(seed, _FEATURES)
    delay_many(random.Random(seed * 7 + 1), made)
    over = max(max(at, event["event_time"] - T0) for at, event in made.events) + 1
    for cluster, system in sorted({event["cluster"]: event["system"] for _, event in made.events}.items()):
        common = {"schema_version": 1, "event_time": T0 + over, "system": system, "cluster": cluster}
        made.events.append((over, {**common, "type": "clock"}))
    return made


def differing_ends(made: History) -> list[str]:
    """Return one line for each row that ends otherwise than in order; none if all is right."""
    batches = single_events(made) if made.seed % 4 == 0 else some_batches(made, 12)
    return difference(batches, made.how)


def difference(batches: Batches, how: Conditions) -> list[str]:
    """Return the rows that end otherwise in these batches than in order, except of groups whose rulings allow it.

    Where the last rebalance failed, both ways, the assignment before it stands: that was made with what was known then.
    """
    arrived = [event for batch in batches for event in batch]
    in_order = ends_of(model_tables([sorted(arrived, key=lambda event: event["event_time"])], how))
    found = ends_of(core_tables(batches, how))
    allowed = set(excused(batches))
    return [
        f"{key}: in order {in_order.get(key)}, late {found.get(key)}"
        for key in sorted(in_order.keys() | found.keys(), key=repr)
        if in_order.get(key) != found.get(key) and key[1:3] not in allowed
        if not (key[0] == "owner" and _has_failed(in_order, key) and _has_failed(found, key))
    ]


def _has_failed(ends: Ends, owner: tuple[Any, ...]) -> bool:
    """Return whether the last rebalance of the group of a queue's owner failed."""
    return bool(ends.get(("group", *owner[1:3]), {}).get("state") == "failed")


def ends_of(tables: Tables) -> Ends:
    """Return the state at the end: groups as listed, members as described, owners of queues."""
    ends: Ends = {}
    for row in tables.groups:
        shown = {name: row[name] for name in ("state", "mode", "members", "queues")}
        ends["group", row["cluster"], row["group_id"]] = shown
    for row in tables.members:
        if row["left_at"] is None:
            shown = {name: row[name] for name in ("client_id", "instance_id", "subscriptions", "strategies")}
            ends["member", row["cluster"], row["group_id"], row["member_id"]] = shown
    for row in tables.spans:
        if row["valid_to"] is None and row["origin"] == "computed":
            key = ("owner", row["cluster"], row["group_id"], row["topic"], row["broker"], row["queue_id"])
            ends[(*key, row["member_id"])] = True
    return ends


def excused(batches: Batches) -> Iterator[tuple[str, str]]:
    """Yield the groups, with their clusters, that may end otherwise than in order.

    What was decided stays decided: a reported generation, too, with the queues that were known when it was applied, or
    that became known first. A poll that a newer one overtook says nothing of who is there. A deletion after which the
    group has shown itself ends who was silent since, and takes no descriptions or settings from the others. A poll with
    a shorter timeout ends a session by what had been sent; what comes later does not begin another one with that poll.
    """
    arrived: dict[tuple[str, str], list[Event]] = {}
    clocks: dict[str, int] = {}
    for batch in batches:
        for event in batch:
            key = event["cluster"], event.get("group", "")
            is_late = event["event_time"] < clocks.get(event["cluster"], 0)
            newer = [later["type"] for later in arrived.get(key, ()) if later["event_time"] > event["event_time"]]
            if is_late and event["type"] == "group_snapshot" and "group_snapshot" in newer:
                yield key
            if is_late and event["type"] == "group_deleted" and not {*_SIGNS}.isdisjoint(newer):
                yield key
            if is_late and event["type"] in ("member_joined", "heartbeat") and _had_ended(event, arrived.get(key, [])):
                yield key
            yield from _of_other_queues(event, arrived) if is_late else ()
        for event in batch:
            arrived.setdefault((event["cluster"], event.get("group", "")), []).append(event)
            clocks[event["cluster"]] = max(event["event_time"] - LATENESS_MS, clocks.get(event["cluster"], 0))


def _had_ended(event: Event, arrived: list[Event]) -> bool:
    """Return whether a session had ended, by a late event of it, before a poll with another timeout ended it."""
    name, timeout = event["member_id"], event.get("session_timeout_ms", TIMEOUTS[event["system"]])
    for poll in (arrival for arrival in arrived if arrival["type"] == "group_snapshot"):
        is_ended = any("session_timeout_ms" in info for info in poll["members"] if info["member_id"] == name)
        sent = [
            sent_event
            for sent_event in arrived
            if sent_event.get("member_id") == name and sent_event["event_time"] < poll["event_time"]
        ]
        if is_ended and sent and event["event_time"] + timeout < poll["event_time"]:
            return True
    return False


def _of_other_queues(event: Event, arrived: dict[tuple[str, str], list[Event]]) -> Iterator[tuple[str, str]]:
    """Yield the groups in which a late event makes a generation apply with other queues than in order."""
    others = [
        topic_event
        for topic_event in arrived.get((event["cluster"], ""), ())
        if topic_event.get("topic") == event.get("topic")
    ]
    was_known = any(
        topic_event["type"] == "topic_queues" and topic_event["event_time"] > event["event_time"]
        for topic_event in others
    )
    pair = {"topic_queues": "group_snapshot", "group_snapshot": "topic_queues"}.get(event["type"])
    for key, events in arrived.items():
        for other_event in events:
            is_newer = other_event["type"] == pair and (was_known or other_event["event_time"] > event["event_time"])
            if key[0] == event["cluster"] and is_newer and ("generation" in other_event or "generation" in event):
                yield key[0], event.get("group", other_event.get("group"))
