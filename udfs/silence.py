"""Core: the finding ``source_silent``: for how long a cluster sent nothing at all. No I/O.

A gap is known once the clock has passed the event that ends it, or the point at which it became too long; so
what is found does not depend on how the events were cut into batches.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from udfs.journal import Body, Change, FindingClosed, FindingOpened

KIND = "source_silent"


class Silence(msgspec.Struct, kw_only=True):
    """What a cluster's home shard knows of its gaps.

    Attributes:
        last: Newest event time before the clock. pending: Event times at or after it: first and last of each span.
        opened_at: Of the finding that stands open. number: Changes written so far of this cluster's history.
    """

    last: int | None = None
    pending: list[int] = msgspec.field(default_factory=list)
    opened_at: int | None = None
    number: int = 0

    def advance(
        self, cluster: str, seen: Iterable[tuple[int, int]], clock: int | None, silent_ms: int | None, after_ms: int
    ) -> list[Change]:
        """Take in the event times of a batch and answer the findings that open and close.

        Args:
            seen: First and last event time of spans no longer than ``after_ms``.
            silent_ms: The driver saw the cluster silent up to here. after_ms: How long a gap may be.
        """
        points = sorted({point for span in seen for point in span}.union(self.pending))
        changes: list[Change] = []
        waiting: list[int] = []
        for point in points:
            if clock is None or point >= clock:
                waiting.append(point)
            elif self.last is None or point > self.last:
                self._meet(cluster, point, after_ms, changes)
        self.pending = _thinned(waiting, after_ms)
        if self.last is not None and clock is not None and self.last + after_ms < clock:
            self._open(cluster, self.last + after_ms, changes)
        newest = self.pending[-1] if self.pending else self.last
        if silent_ms is not None and newest is not None and newest + after_ms < silent_ms:
            self._open(cluster, newest + after_ms, changes)
        return changes

    def _meet(self, cluster: str, point: int, after_ms: int, changes: list[Change]) -> None:
        if self.last is not None and point - self.last > after_ms:
            self._open(cluster, self.last + after_ms, changes)
        if self.opened_at is not None and point > self.opened_at - after_ms:
            closed_at = max(point, self.opened_at)
            closed = FindingClosed(finding_id=finding_id(cluster, self.opened_at), closed_at=closed_at)
            self._write(cluster, closed_at, closed, changes)
            self.opened_at = None
        self.last = point

    def _open(self, cluster: str, opened_at: int, changes: list[Change]) -> None:
        if self.opened_at is not None:
            return
        self.opened_at = opened_at
        opened = FindingOpened(
            finding_id=finding_id(cluster, opened_at),
            finding=KIND,
            severity="critical",
            message=f"Nothing came from cluster {cluster} for too long; its groups are not judged meanwhile.",
            advice="See whether its collector runs and reaches the cluster: it sends a clock event each round.",
            evidence=[],
            opened_at=opened_at,
        )
        self._write(cluster, opened_at, opened, changes)

    def _write(self, cluster: str, at: int, body: Body, changes: list[Change]) -> None:
        self.number += 1
        changes.append(
            Change(cluster=cluster, group_id=None, subject=cluster, number=self.number, event_time=at, body=body)
        )


def finding_id(cluster: str, opened_at: int) -> str:
    """Answer the id of the finding that opened then."""
    return hashlib.blake2b(f"{cluster}\x00{KIND}\x00{opened_at}".encode(), digest_size=16).hexdigest()


def _thinned(points: list[int], after_ms: int) -> list[int]:
    """Keep first and last of each span of ``after_ms``: enough to find every longer gap."""
    kept: list[int] = []
    for index, point in enumerate(points):
        first = index == 0 or points[index - 1] // after_ms != point // after_ms
        last = index == len(points) - 1 or points[index + 1] // after_ms != point // after_ms
        if first or last:
            kept.append(point)
    return kept
