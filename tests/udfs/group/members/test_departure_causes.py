"""How a member departed: kind of cause, time, evidence."""

from __future__ import annotations

import pytest

from udfs.group.members.departure_causes import DepartureCause, departure_cause
from udfs.model.events import Departure


@pytest.mark.parametrize(
    ("departure", "kind", "reason", "at", "detail"),
    [
        (None, "member_gone", "absent_from_snapshot", 90, None),
        (Departure(member_id="m", kind="left"), "member_left", "left", 90, "inferred"),
        (Departure(member_id="m", kind="left", evidence="e"), "member_left", "left", 90, "inferred: e"),
        (Departure(member_id="m", kind="left", evidence="e", inferred=False), "member_left", "left", 90, "e"),
        (Departure(member_id="m", kind="left", inferred=False), "member_left", "left", 90, None),
        (Departure(member_id="m", kind="expired", at=80), "session_expired", "expired", 80, "inferred"),
        # No member that a snapshot lacks departed after it.
        (Departure(member_id="m", kind="expired", at=91), "session_expired", "expired", 90, "inferred"),
        # That it is gone is all that is known: the evidence infers nothing.
        (Departure(member_id="m", kind="gone", evidence="e"), "member_gone", "absent_from_snapshot", 90, "e"),
    ],
)
def test_a_departure_is_what_was_reported_of_it_or_an_absence(
    departure: Departure | None, kind: str, reason: str, at: int, detail: str | None
) -> None:
    cause = departure_cause(departure, 90, "e7")
    assert (cause.kind, cause.reason, cause.at, cause.detail) == (kind, reason, at, detail)
    assert cause.event_id == "e7"


def test_other_events_are_not_causes_of_a_departure() -> None:
    with pytest.raises(KeyError):
        DepartureCause("member_joined", 1)
