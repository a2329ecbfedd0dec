"""Core: the kinds of groups: who counts a group's generations, and who assigns its queues. No I/O."""

from __future__ import annotations

import enum

from udfs.group.state import Group
from udfs.model.events import System


class GroupKind(enum.Enum):
    """The kind of a group, by what its source reports."""

    COUNTED = "counted"
    """The monitor counts generations; all members take theirs over at once: Kafka's groups that are known by their
    members' own events, broadcasting, sharing by message."""
    CLIENT_ASSIGNED = "client-assigned"
    """The monitor counts generations; each member computes its own queues and takes them over at a time of its own:
    RocketMQ's and MetaQ's clients in clustering mode."""
    REPORTED = "reported"
    """A coordinator counts generations and assigns: Kafka's groups that are known by its snapshots."""
    NOT_FOLLOWED = "not followed"
    """Of a kind that is listed and not recomputed."""


def kind_of(group: Group, system: System) -> GroupKind:
    """Return a group's kind."""
    if not group.followed:
        return GroupKind.NOT_FOLLOWED
    if group.generation is not None:
        return GroupKind.REPORTED
    if system != "kafka" and (group.mode or "clustering") == "clustering":
        return GroupKind.CLIENT_ASSIGNED
    return GroupKind.COUNTED
