"""Core: in which order the events of one millisecond apply. No I/O."""

from __future__ import annotations

from udfs.group.descriptions import describes
from udfs.model.events import ORDER_AT_ONE_MOMENT, GroupSnapshot, Heartbeat
from udfs.model.group_api import DueEvent

BEAT = 2 * ORDER_AT_ONE_MOMENT[Heartbeat] + 1  # without a description: after all described ones
EXPIRY = 100  # after all events of its event time


def order_of(due: DueEvent) -> int:
    """Return the rank of an event among those of its event time."""
    return BEAT if is_bare(due.event) else 2 * ORDER_AT_ONE_MOMENT[type(due.event)]


def is_bare(event: object) -> bool:
    """Return whether an event is a heartbeat without a description."""
    return isinstance(event, Heartbeat) and not describes(event)


def generation_of(due: DueEvent) -> int:
    """Return the sort key of snapshots of one event time, polls last."""
    if isinstance(due.event, GroupSnapshot) and due.event.generation is not None:
        return due.event.generation
    return 2**63
