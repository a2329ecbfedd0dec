"""Core: queues of a group that nobody reads. No I/O."""

from __future__ import annotations

import msgspec

from udfs.model.finding_names import FindingNames


class UnreadQueues(msgspec.Struct, array_like=True):
    """Queues of subscribed topics that nobody reads.

    Attributes:
        since: Since when nobody reads each of them, by topic, broker and number.
        evaluated_at: When the finding was last evaluated; None if it is not open. message, names: The finding.
    """

    since: dict[tuple[str, str | None, int], int]
    evaluated_at: int | None = None
    message: str = ""
    names: FindingNames = FindingNames()
