"""Core: the order in which events with the same timestamp apply. No I/O."""

from __future__ import annotations

from udfs.group.batch.event_queue import HEARTBEAT
from udfs.group.members.descriptions import has_description
from udfs.model.events import ORDER_AT_ONE_TIME, GroupSnapshot, Heartbeat
from udfs.model.group_api import DueEvent
from udfs.model.snapshot_meaning import Meaning, has_joined, meaning_of

_COMPLETING, _COMPLETED, _PREPARING = range(3)
_POLLS_LAST = 2**63, _COMPLETED  # generations fit 63 bits


def order_of(due: DueEvent) -> int:
    """Return the rank of an event among those with the same timestamp."""
    return HEARTBEAT if is_bare(due.event) else 2 * ORDER_AT_ONE_TIME[type(due.event)]


def is_bare(event: object) -> bool:
    """Return whether an event is a heartbeat without a description."""
    return isinstance(event, Heartbeat) and not has_description(event)


def snapshot_order_of(due: DueEvent) -> tuple[int, int]:
    """Return the sort key of snapshots with the same timestamp: generation, then phase of its rebalance; polls last.

    After its join phase a rebalance already has its new generation; at its start it still has the old one.
    """
    if not isinstance(due.event, GroupSnapshot) or due.event.generation is None:
        return _POLLS_LAST
    if meaning_of(due.event) is not Meaning.UNDER_WAY:
        return due.event.generation, _COMPLETED
    return due.event.generation, _COMPLETING if has_joined(due.event) else _PREPARING
