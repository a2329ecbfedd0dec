"""Dashboard: findings that many groups of a cluster have at once, and that do not count for a group's health."""

from __future__ import annotations

import json
from dataclasses import astuple

from dashboard.reading.questions import Reading
from dashboard.reading.window import DAY_MS, MINUTE_MS, last_day
from streaming.views.widespread import WidespreadKind, widespread_kinds


def widespread(reading: Reading, cluster: str | None = None) -> tuple[WidespreadKind, ...]:
    """Return the kinds of findings that are widespread now, or at the end of a recording, to the minute.

    Args:
        cluster: Only in this one; None for all.
    """
    until_ms = last_day(reading).since_ms + DAY_MS + MINUTE_MS

    def compute() -> bytes:
        found = widespread_kinds(reading.tables, reading.widespread, until_ms)
        return json.dumps([astuple(spread) for spread in found]).encode()

    kept = reading.kept(("widespread", until_ms), ["findings", "groups"], compute)
    found = (WidespreadKind(*values) for values in json.loads(kept))
    return tuple(spread for spread in found if cluster in (None, spread.cluster))
