"""Core: for how long nobody read a queue, as a row of ``rebalances`` and a change of the journal list it. No I/O."""

from __future__ import annotations

from typing import Final

import msgspec

PROGRESS: Final = "progress"  # commits or pulls of the former owner
SESSIONS: Final = "sessions"  # heartbeats, or the end of its session: it committed nothing
MAX_LISTED_OUTAGES: Final = 100  # queues that a row of ``rebalances`` lists; the others are in its sums


class QueueOutage(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """For how long nobody read one queue.

    Attributes:
        former_member_id, member_id: Who read it before, and who has it now.
        outage_min_ms, outage_max_ms: Its length, at least and at most; None: not known, or not over.
        evidence: ``progress`` or ``sessions``; None: nothing shows up to when the former owner read.
    """

    topic: str
    broker: str | None
    queue_id: int
    former_member_id: str | None = None
    member_id: str | None = None
    outage_min_ms: int | None = None
    outage_max_ms: int | None = None
    evidence: str | None = None
