"""The core compared with the model of the new protocol; the shortest beginning of a history that differs."""

from __future__ import annotations

from tests.model.check import Batches, cuts, difference, one_batch, story
from tests.model.disturbances import History
from tests.model.new_protocol_reference import new_protocol_tables


def differing(made: History) -> str | None:
    """Return what the core does otherwise in any cut, and the shortest beginning that shows it; None: nothing."""
    whole = new_protocol_tables(one_batch(made))
    for number, (batches, how) in enumerate(cuts(made)):
        lines = difference(batches, how, whole)
        if lines:
            return f"cut {number}, {sorted(made.features)}:\n{_shortest(made)}\n  " + "\n  ".join(lines)
    return None


def _shortest(made: History) -> str:
    """Return the shortest beginning that differs, in one batch, of one group where that is enough; else all of it."""
    events = [event for _, event in made.events]
    for end in sorted({event["event_time"] for event in events}):
        beginning = [event for event in events if event["event_time"] <= end]
        if not _differs(made, [beginning]):
            continue
        for group in sorted({event["group"] for event in events if "group" in event}):
            alone = [event for event in beginning if event.get("group", group) == group]
            if _differs(made, [alone]):
                return story([alone])
        return story([beginning])
    return story([events])


def _differs(made: History, batches: Batches) -> bool:
    return bool(difference(batches, made.how, new_protocol_tables(batches)))
