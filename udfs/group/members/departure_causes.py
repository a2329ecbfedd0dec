"""Core: how a member departed: the kind of cause, its time and its evidence. No I/O.

This module only maps. Departures are found by ``triggers._departure`` in groups with reported generations, by
``group_epochs._departure`` with the new protocols, by ``polls.on_snapshot`` in polls, ``membership.on_leave`` in
events, ``heartbeats.apply_expiry`` at deadlines.

=====================  ===================  =======================
reported, observed     trigger              ``left_reason``
=====================  ===================  =======================
``left``, an event     ``member_left``      ``left``
``expired``, deadline  ``session_expired``  ``expired``
``gone``, nothing      ``member_gone``      ``absent_from_snapshot``
=====================  ===================  =======================
"""

from __future__ import annotations

from udfs.model.events import Departure
from udfs.model.journal import LeftReason, TriggerKind

INFERRED = "inferred"
_LEFT_REASONS: dict[TriggerKind, LeftReason] = {
    "member_left": "left",
    "session_expired": "expired",
    "member_gone": "absent_from_snapshot",
}
_KINDS: dict[str, TriggerKind] = {"left": "member_left", "expired": "session_expired", "gone": "member_gone"}


class DepartureCause:
    """How one member departed."""

    def __init__(self, kind: TriggerKind, at: int, detail: str | None = None, event_id: str | None = None) -> None:
        self.kind = kind
        self.at = at
        self.detail = detail
        self.event_id = event_id
        self.reason: LeftReason = _LEFT_REASONS[kind]


def departure_cause(departure: Departure | None, at: int, event_id: str) -> DepartureCause:
    """Return how a member departed that is missing from a snapshot; None if nothing was reported about it.

    Args:
        at: When the snapshot applies; the member departed no later than that.
    """
    if departure is None:
        return DepartureCause("member_gone", at, None, event_id)
    detail = departure.evidence
    if departure.inferred and departure.kind != "gone":
        detail = INFERRED if detail is None else f"{INFERRED}: {detail}"
    return DepartureCause(
        _KINDS[departure.kind], at if departure.at is None else min(departure.at, at), detail, event_id
    )
