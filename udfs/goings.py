"""Core: how a member went: what kind of cause it is, when, and what proves it. No I/O."""

from __future__ import annotations

from udfs.events import Departure
from udfs.journal import LeftReason, TriggerKind

INFERRED = "inferred"
_LEFT_REASONS: dict[TriggerKind, LeftReason] = {
    "member_left": "left",
    "session_expired": "expired",
    "member_gone": "absent_from_snapshot",
}
_KINDS: dict[str, TriggerKind] = {"left": "member_left", "expired": "session_expired", "gone": "member_gone"}


class Going:
    """How one member went."""

    def __init__(self, kind: TriggerKind, at: int, detail: str | None = None, event_id: str | None = None) -> None:
        self.kind = kind
        self.at = at
        self.detail = detail
        self.event_id = event_id
        self.reason: LeftReason = _LEFT_REASONS[kind]


def going_of(departure: Departure | None, at: int, event_id: str) -> Going:
    """Answer how a member went that a snapshot shows no more; None: nothing was told of it.

    Args:
        at: When the snapshot applies: nobody that it lacks went after it.
    """
    if departure is None:
        return Going("member_gone", at, None, event_id)
    detail = departure.evidence
    if departure.inferred and departure.kind != "gone":
        detail = INFERRED if detail is None else f"{INFERRED}: {detail}"
    return Going(_KINDS[departure.kind], at if departure.at is None else min(departure.at, at), detail, event_id)
