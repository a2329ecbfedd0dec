"""Core: the finding ``events_lost``: input that was deleted before it was read. No I/O.

The loss is detected outside, where files and offsets are known; it arrives as input, so that the finding is a function
of the input.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, TypeAlias

import msgspec

from udfs.model.journal import FindingOpened
from udfs.model.timestamps import write_timestamp

KIND = "events_lost"
# A loss cannot be repaired, so the finding closes this long after it was detected.
CLOSES_AFTER_MS = 86_400_000
_ADVICE = (
    "Events of that span are unknown: rebalances in it are missing, and causes after it may be."
    " Keep the job running, or raise the retention: [event_log] of the collector, retention.ms of the topic."
)

TimeMs: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=253_402_300_799_999)]  # to the end of the year 9999


class Loss(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Lost input of a cluster.

    Attributes:
        what: The deleted or skipped input, as a sentence without its full stop.
        since_ms: Everything written before this was read; None if unknown.
        until_ms: Everything written after this can be read; None if nothing is left, in which case the time of
            detection counts.
        noticed_ms: When the loss was detected.
    """

    what: Annotated[str, msgspec.Meta(max_length=1_000)]
    since_ms: TimeMs | None = None
    until_ms: TimeMs | None = None
    noticed_ms: TimeMs


def loss_id(cluster: str, loss: Loss) -> str:
    """Return the id of the finding; a loss that is reported again has the same id."""
    content = msgspec.json.encode([cluster, KIND, loss])
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def lost_found(cluster: str, loss: Loss, newest_ms: int | None) -> FindingOpened:
    """Return the finding of one loss.

    Args:
        newest_ms: The cluster's newest event before the loss.
    """
    until = loss.noticed_ms if loss.until_ms is None else loss.until_ms
    since = newest_ms if loss.since_ms is None else loss.since_ms
    since = None if since is None else min(since, until)
    span = (
        f"up to {write_timestamp(until)}"
        if since is None
        else f"from {write_timestamp(since)} to {write_timestamp(until)}"
    )
    return FindingOpened(
        finding_id=loss_id(cluster, loss),
        finding=KIND,
        severity="critical",
        message=f"{loss.what}: events of cluster {cluster} are missing {span}.",
        advice=_ADVICE,
        evidence=[],
        opened_at=until if since is None else since,
    )
