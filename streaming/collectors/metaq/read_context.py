"""Shell: context of one ZooKeeper read. No I/O here."""

from __future__ import annotations

from dataclasses import dataclass

from streaming.collectors.metaq.zk_times import TransactionTimes


@dataclass(frozen=True)
class ReadContext:
    """One read of ZooKeeper.

    Attributes:
        noticed: When the first watch for this read fired, by ZooKeeper's clock.
        at: When it was read; everything in it had happened by then.
        continuous: Watches were set since the previous read, so only milliseconds lie between them.
        settle_ms: How long a state must be unchanged before it is accepted.
    """

    cluster: str
    noticed: int
    at: int
    continuous: bool
    settle_ms: int
    times: TransactionTimes

    def removed_at(self, pzxid: int, *, alone: bool) -> int:
        """Return a time by which the last removal from a folder had certainly happened.

        Args:
            pzxid: The folder's last change.
            alone: It was the only change, so the watch fired for it and has its time.
        """
        at = self.noticed if alone else self.at
        later, sooner = self.times.not_after(pzxid), self.times.not_before(pzxid)
        if later is not None:
            at = min(at, later)
        return at if sooner is None else max(at, sooner)
