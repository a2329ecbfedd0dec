"""Core: what applying an event came to. No I/O."""

from __future__ import annotations

from typing import NamedTuple


class Applied(NamedTuple):
    """What an event did to its group.

    Attributes:
        changed: It changed something; only heartbeats that came late and changed nothing are passed over.
        outdated: It carried something older than what stays in its place: that part changes nothing.
    """

    changed: bool = False
    outdated: bool = False
