"""What is known of a cluster's topics at any time."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tests.model.times import METADATA_AGE_MS, Event


class Topics:
    """All events of the topics of one cluster, in the order of its times."""

    def __init__(self) -> None:
        self.floor = 0  # nothing is kept of the time before the last batch but what was known at its end
        self.reported: dict[str, list[tuple[int, list[dict[str, Any]]]]] = {}
        self.applied: set[tuple[str, str]] = set()  # topics and ids of events: a repeat has the time of the first

    def take(self, event: Event) -> None:
        """Take in an event of a topic, unless it repeats another one."""
        name = event["topic"], event["event_id"]
        if name in self.applied:
            return
        self.applied.add(name)
        history = self.reported.setdefault(event["topic"], [])
        if history and history[-1][0] == event["event_time"]:
            history.pop()  # of one moment the last counts
        history.append((event["event_time"], _queues(event)))

    def at(self, at: int) -> dict[str, list[dict[str, Any]]]:
        """Return the queues of all topics that are known at a time."""
        found, at = {}, max(at, self.floor)
        for topic, history in self.reported.items():
            queues = [queues for since, queues in history if since <= at]
            if queues:
                found[topic] = queues[-1]
        return found

    def was_reported(self, topic: str, at: int) -> bool:
        """Return whether any queue of a topic was reported up to a time."""
        return self.first(topic, at) is not None

    def counts_as_reported(self, topic: str, at: int) -> bool:
        """Return whether any queue of a topic counts as reported at a time: what is kept shows no earlier one."""
        return self.was_reported(topic, max(at, self.floor))

    def changed_at(self, topic: str, at: int) -> int:
        """Return since when a topic has had the queues that it has at a time; 0: none was ever reported."""
        began, queues = 0, list[dict[str, Any]]()
        for since, reported in self.reported.get(topic, []):
            if since <= at and reported != queues:
                began, queues = since, reported
        return began

    def appeared(self, topic: str, at: int) -> int | None:
        """Return when a topic that had had no queues was last reported with some, up to a time."""
        appeared, before = None, list[dict[str, Any]]()
        for since, queues in self.reported.get(topic, []):
            appeared = since if since <= at and queues and not before else appeared
            before = queues
        return appeared

    def newest(
        self, topics: Collection[str], others: Collection[str], at: int, assigned: Collection[str] = ()
    ) -> int | None:
        """Return when the last of some topics was made, if all were recently, after others had been reported.

        Args:
            assigned: Topics that exist: one of them that is not reported was made just now.
        """
        reported_now = self.at(at)
        is_just_made = {topic for topic in assigned if topic not in reported_now}
        times = [at if topic in is_just_made else self.appeared(topic, at) for topic in topics]
        known = [since for since in times if since is not None]
        if not known or len(known) < len(times) or min(known) < at - 2 * METADATA_AGE_MS:
            return None
        histories = [self.reported.get(topic, []) for topic in others]
        reported = [[queues for since, queues in history if since < min(known)][-1:] for history in histories]
        return max(known) if any(last and last[0] for last in reported) else None

    def first(self, topic: str, at: int) -> list[dict[str, Any]] | None:
        """Return the first queues of a topic, if they were reported up to a time."""
        return next((queues for since, queues in self.reported.get(topic, []) if queues and since <= at), None)

    def rows(self, cluster: str) -> list[dict[str, Any]]:
        """Return the spans in which a topic had the same queues."""
        rows: list[dict[str, Any]] = []
        for topic, history in self.reported.items():
            now: dict[str, Any] | None = None
            for at, queues in history:
                names = [(queue["broker"] or "", queue["queue_id"], queue["racks"]) for queue in queues]
                if now is not None and now["queues"] == names:
                    continue
                if now is not None:
                    now["valid_to"] = at
                    rows += [now] if now["valid_from"] < at else []
                now = {"cluster": cluster, "topic": topic, "valid_from": at, "valid_to": None, "queues": names}
                now = now if names else None
            rows += [now] if now is not None else []
        return rows


def _queues(event: Event) -> list[dict[str, Any]]:
    if event.get("queues") is None:
        return [{"broker": None, "queue_id": number, "racks": None} for number in range(event["queue_count"])]
    found = [
        {
            "broker": queue.get("broker") if event["system"] != "kafka" else None,
            "queue_id": queue["queue_id"],
            "racks": tuple(queue["racks"]) if queue.get("racks") else (queue["rack"],) if queue.get("rack") else None,
        }
        for queue in event["queues"]
    ]
    return sorted(found, key=lambda queue: (queue["broker"] or "", queue["queue_id"]))
