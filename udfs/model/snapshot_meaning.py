"""Core: what a snapshot of a group says. No I/O.

The contract has one event for whatever shows a whole group: a coordinator's record, a poll, a line of a log, an export.
What it says follows from several of its fields together, so it is decided here, and nowhere else.
"""

from __future__ import annotations

from enum import Enum

from udfs.model.events import GroupSnapshot
from udfs.model.systems import SYSTEMS

# In the first two states the coordinator is in the middle of a rebalance: the members are not final (DescribeGroups,
# GroupState).
_PREPARING, _COMPLETING, _STABLE = "preparingrebalance", "completingrebalance", "stable"


class Meaning(Enum):
    """What a snapshot says; each says exactly one of these."""

    RESTORED = "what an export holds of a group; nothing happened to it"
    LISTED = "there is a group of a kind that is not followed"
    UNDER_WAY = "a coordinator is in the middle of a rebalance; nobody has departed"
    OVER = "a coordinator's group no longer rebalances; no member is named"
    NUMBERED = "a generation of a coordinator, with its number"
    ASSIGNED = "a generation of a coordinator, as a poll shows it: its number is counted"
    POLLED = "the members of a group, without a generation; those that it lacks have departed"


def meaning_of(snapshot: GroupSnapshot) -> Meaning:
    """Return what a snapshot says."""
    state = _state(snapshot)
    if snapshot.restored:
        return Meaning.RESTORED
    if snapshot.state == "not_followed":
        return Meaning.LISTED
    if state in (_PREPARING, _COMPLETING):
        return Meaning.UNDER_WAY
    if snapshot.generation is not None:
        return Meaning.NUMBERED
    if snapshot.generation_source == "counted":
        return Meaning.ASSIGNED
    names_group = bool(snapshot.members) or snapshot.assignments is not None or snapshot.generation_source is not None
    is_of_coordinator = SYSTEMS[snapshot.system].coordinator_assigns
    return Meaning.OVER if is_of_coordinator and state == _STABLE and not names_group else Meaning.POLLED


def names_generation(snapshot: GroupSnapshot) -> bool:
    """Return whether a snapshot names a generation or shows one, be it that from before the rebalance under way."""
    return not snapshot.restored and (snapshot.generation is not None or snapshot.generation_source == "counted")


def has_joined(snapshot: GroupSnapshot) -> bool:
    """Return whether a snapshot of a rebalance was taken after its members had joined."""
    return snapshot.joined_at is not None or _state(snapshot) == _COMPLETING


def _state(snapshot: GroupSnapshot) -> str:
    return (snapshot.state or "").replace("_", "").lower()
