"""Core: gaps in a cluster's input: ``source_silent`` (no events sent), ``events_lost`` (deleted unread). No I/O.

A gap is reported once the clock has passed the event that ends it, or the point at which it became too long; so
findings do not depend on how events were cut into batches.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from udfs.model.journal import Body, Change, FindingClosed, FindingOpened
from udfs.model.losses import CLOSES_AFTER_MS, Loss, loss_id, lost_found
from udfs.model.timestamps import write_timestamp

KIND = "source_silent"


class SourceGaps(msgspec.Struct, kw_only=True):
    """The gaps of a cluster, in its home shard.

    Attributes:
        last: Newest event time before the clock. pending: Event times at or after it: first and last of each span.
        opened_at: When the open finding opened. number: Changes of this cluster's history written so far.
        ahead_since: When the open finding ``clocks_ahead`` opened. ahead_ms: The reported lead of the clocks.
        losses: Open findings of lost input: id -> when it closes. A source reports at most one loss in ten minutes, and
            each closes after a day.
    """

    last: int | None = None
    pending: list[int] = msgspec.field(default_factory=list)
    opened_at: int | None = None
    number: int = 0
    ahead_since: int | None = None
    ahead_ms: int = 0
    losses: dict[str, int] = msgspec.field(default_factory=dict)

    def advance(self, cluster: str, spans: Iterable[tuple[int, int]], clock: int | None, after_ms: int) -> list[Change]:
        """Apply the event times of a batch and return the findings that open and close.

        Args:
            spans: First and last event time of spans no longer than ``after_ms``.
            after_ms: How long a gap may be.
        """
        points = sorted({point for span in spans for point in span}.union(self.pending))
        changes: list[Change] = []
        waiting: list[int] = []
        for point in points:
            if clock is None or point >= clock:
                waiting.append(point)
            elif self.last is None or point > self.last:
                self._observe(cluster, point, after_ms, changes)
        self.pending = _thinned(waiting, after_ms)
        if self.last is not None and clock is not None and self.last + after_ms < clock:
            self._open(cluster, self.last, self.last + after_ms, changes)
        return changes

    def newest(self) -> int | None:
        """Return the newest event time of the batches so far."""
        return self.pending[-1] if self.pending else self.last

    def report_losses(
        self, cluster: str, losses: Iterable[Loss], clock: int | None, newest: int | None = None
    ) -> list[Change]:
        """Return the findings that open for lost input, each once, and those that the clock closes.

        Args:
            newest: The start of the gap, if the loss itself has none.
        """
        changes: list[Change] = []
        for loss in sorted(losses, key=lambda loss: (loss.noticed_ms, loss.what)):
            identity = loss_id(cluster, loss)
            if identity not in self.losses:
                self.losses[identity] = loss.noticed_ms + CLOSES_AFTER_MS
                opened = lost_found(cluster, loss, newest)
                self.write(cluster, opened.opened_at, opened, changes)
        for identity, closes_at in sorted(self.losses.items(), key=lambda item: (item[1], item[0])):
            if clock is not None and closes_at < clock:
                del self.losses[identity]
                closed = FindingClosed(finding_id=identity, closed_at=closes_at)
                self.write(cluster, closes_at, closed, changes)
        return changes

    def _observe(self, cluster: str, point: int, after_ms: int, changes: list[Change]) -> None:
        if self.last is not None and point - self.last > after_ms:
            self._open(cluster, self.last, self.last + after_ms, changes)
        if self.opened_at is not None and point > self.opened_at - after_ms:
            closed_at = max(point, self.opened_at)
            closed = FindingClosed(finding_id=finding_id(cluster, self.opened_at), closed_at=closed_at)
            self.write(cluster, closed_at, closed, changes)
            self.opened_at = None
        self.last = point

    def _open(self, cluster: str, last_ms: int, opened_at: int, changes: list[Change]) -> None:
        if self.opened_at is not None:
            return
        self.opened_at = opened_at
        opened = silent_found(cluster, last_ms, opened_at, "no event came")
        self.write(cluster, opened_at, opened, changes)

    def write(self, cluster: str, event_time: int, body: Body, changes: list[Change]) -> None:
        """Write one change of the cluster's history."""
        self.number += 1
        changes.append(
            Change(
                cluster=cluster, group_id=None, subject=cluster, number=self.number, event_time=event_time, body=body
            )
        )


def silent_found(cluster: str, last_ms: int, opened_at: int, reason: str) -> FindingOpened:
    """Return the finding that a cluster sends no events.

    Args:
        last_ms: The event time of the last event. reason: Why there are none, without a capital or a full stop.
    """
    return FindingOpened(
        finding_id=finding_id(cluster, opened_at),
        finding=KIND,
        severity="critical",
        message=f"Nothing is known of cluster {cluster} since {write_timestamp(last_ms)}: {reason}."
        " Until an event comes, its groups are not evaluated.",
        advice="Check that the cluster answers, and that what reports its events runs: a collector emits a clock event"
        " at each poll.",
        evidence=[],
        opened_at=opened_at,
    )


def finding_id(cluster: str, opened_at: int, kind: str = KIND) -> str:
    """Return the id of the finding that opened then."""
    return hashlib.blake2b(f"{cluster}\x00{kind}\x00{opened_at}".encode(), digest_size=16).hexdigest()


def _thinned(points: list[int], after_ms: int) -> list[int]:
    """Keep the first and last time of each span of ``after_ms``: enough to find every longer gap."""
    kept: list[int] = []
    for index, point in enumerate(points):
        first = index == 0 or points[index - 1] // after_ms != point // after_ms
        last = index == len(points) - 1 or points[index + 1] // after_ms != point // after_ms
        if first or last:
            kept.append(point)
    return kept
