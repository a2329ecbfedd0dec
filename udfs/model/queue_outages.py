"""Core: how long nobody read a queue, as listed in a row of ``rebalances`` and in the journal. No I/O."""

from __future__ import annotations

from typing import Final

import msgspec

PROGRESS: Final = "progress"  # commits or pulls of the former owner
SESSIONS: Final = "sessions"  # heartbeats, or the end of the session of an owner that committed nothing
MAX_LISTED_OUTAGES: Final = 100  # queues listed in a row of ``rebalances``; its sums include the others


class QueueOutage(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """How long nobody read one queue.

    Attributes:
        former_member_id, member_id: Its previous and its current reader.
        outage_min_ms, outage_max_ms: The outage's bounds; None if unknown, or not over.
        evidence: ``progress`` or ``sessions``; None if nothing shows how far the former owner read.
    """

    topic: str
    broker: str | None
    queue_id: int
    former_member_id: str | None = None
    member_id: str | None = None
    outage_min_ms: int | None = None
    outage_max_ms: int | None = None
    evidence: str | None = None
