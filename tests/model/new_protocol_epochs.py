"""What the model notes of a group of the new protocol: its members as recorded, and the epochs without a row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.model.allocation import Held
from tests.model.group import Trigger

AWAY = -2
Owned = set[tuple[str, int]]  # topic id, partition


@dataclass
class RecordedMember:
    """A member as the records show it."""

    joined_at: int
    described: dict[str, Any] = field(default_factory=dict)
    pattern: str | None = None
    epoch: int | None = None
    state: str = "stable"
    held: Owned = field(default_factory=set)  # with what it has yet to give up
    target: list[tuple[str, int]] = field(default_factory=list)  # in the order of its record
    is_new: bool = True  # since the last target

    def fields(self) -> dict[str, Any]:
        return self.described


@dataclass
class Epoch:
    """An epoch that has no row yet."""

    number: int
    began_at: int
    triggers: list[Trigger]
    members: dict[str, dict[str, Any]]  # as the epoch found them
    members_before: int
    missed: int | None
    held: Held  # what members had when it began, those included that have departed with it
    counts: dict[str, int]  # the topics when it was overtaken, or reached
    changes: bool  # as far as it is known: one that changes nothing overtakes none
    reached: int  # the newest that changed nothing since
    strategy: str | None = None  # that its target shows
    targets: Held | None = None  # what they shall have
    sessions: dict[str, dict[str, Any]] = field(default_factory=dict)  # of its members
    ended: list[dict[str, Any]] = field(default_factory=list)  # sessions that ended with it, or in it


def grown(counts: dict[str, int], topics: dict[str, list[dict[str, Any]]]) -> int:
    """Return how many queues metadata shows that an epoch does not know."""
    return sum(max(0, len(topics.get(topic, ())) - count) for topic, count in counts.items())


def in_order(partitions: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """Return partitions in the order of their record."""
    return [(topic["topic"], number) for topic in partitions for number in topic["partitions"]]


def as_sets(held: Held) -> dict[str, set[Any]]:
    """Return an assignment without its order, of the members that have anything."""
    return {name: set(queues) for name, queues in held.items() if queues}


def owned_of(partitions: list[dict[str, Any]]) -> Owned:
    """Return partitions without their order."""
    return set(in_order(partitions))
