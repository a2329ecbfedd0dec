"""Core: the topics of a history, at any time of it, as the coordinator of a group asks for them. No I/O."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable
from typing import NamedTuple

from udfs.model.events import TopicQueues
from udfs.model.queues import Queues, queues_of


class _Change(NamedTuple):
    """A topic's queues and its id from a time on; without queues it is deleted."""

    at: int
    queues: Queues
    topic_id: str | None


class KnownTopics:
    """The topics of a cluster by the events of a history; see ``TopicsView`` for what each function returns."""

    def __init__(self, events: Iterable[TopicQueues]) -> None:
        self._changes: dict[str, list[_Change]] = {}
        for event in sorted(events, key=lambda event: event.event_time):
            change = _Change(event.event_time, queues_of(event), event.topic_id)
            self._changes.setdefault(event.topic, []).append(change)
        self._since = min((changes[0].at for changes in self._changes.values()), default=None)

    def at(self, topic: str, time_ms: int) -> Queues | None:
        """Return the topic's queues at that time; ``()`` when deleted, None when not reported yet."""
        change = self._change_at(topic, time_ms)
        return None if change is None else change.queues

    def before(self, topic: str, time_ms: int) -> Queues | None:
        """Return the topic's queues right before a time."""
        return self.at(topic, time_ms - 1)

    def first_description(self, topic: str) -> Queues | None:
        """Return the first reported queues of the topic."""
        changes = self._changes.get(topic)
        return changes[0].queues if changes else None

    def has_any(self, time_ms: int) -> bool:
        """Return whether any topic had been reported by then."""
        return self._since is not None and self._since <= time_ms

    def topic_id(self, topic: str, time_ms: int) -> str | None:
        """Return Kafka's UUID of the topic that had this name at that time, if reported."""
        change = self._change_at(topic, time_ms)
        return None if change is None else change.topic_id

    def renewed_at(self, topic: str, time_ms: int) -> int | None:
        """Return when the name last changed to another topic, or to none."""
        changes = self._changes.get(topic, [])
        times = [
            change.at
            for former, change in itertools.pairwise(changes)
            if change.at <= time_ms and _life(change) != _life(former)
        ]
        return times[-1] if times else None

    def appeared_at(self, topic: str, time_ms: int) -> int | None:
        """Return when the topic was last reported after it was unknown or deleted."""
        changes = self._changes.get(topic, [])
        formers = [None, *changes]
        times = [
            change.at
            for former, change in zip(formers, changes, strict=False)
            if change.at <= time_ms and change.queues and (former is None or not former.queues)
        ]
        return times[-1] if times else None

    def _change_at(self, topic: str, time_ms: int) -> _Change | None:
        changes = self._changes.get(topic, [])
        place = bisect.bisect_right(changes, time_ms, key=lambda change: change.at)
        return changes[place - 1] if place else None


def _life(change: _Change) -> tuple[bool, str | None]:
    return bool(change.queues), change.topic_id if change.queues else None
