"""Core: in which order the events of one time apply. No I/O."""

from __future__ import annotations

from udfs.group.batch.event_queue import HEARTBEAT
from udfs.group.members.descriptions import describes
from udfs.model.events import ORDER_AT_ONE_TIME, GroupSnapshot, Heartbeat
from udfs.model.group_api import DueEvent

_POLLS_LAST = 2**63  # generations fit 63 bits


def order_of(due: DueEvent) -> int:
    """Return the place of an event among those of its time."""
    return HEARTBEAT if is_bare(due.event) else 2 * ORDER_AT_ONE_TIME[type(due.event)]


def is_bare(event: object) -> bool:
    """Return whether an event is a heartbeat without a description."""
    return isinstance(event, Heartbeat) and not describes(event)


def generation_of(due: DueEvent) -> int:
    """Return what snapshots of one time are sorted by, polls last."""
    if isinstance(due.event, GroupSnapshot) and due.event.generation is not None:
        return due.event.generation
    return _POLLS_LAST
