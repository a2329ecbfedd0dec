"""Shell: context of one ZooKeeper read. No I/O here."""

from __future__ import annotations

from dataclasses import dataclass

from streaming.collectors.metaq.zk_times import TransactionTimes


@dataclass(frozen=True)
class ReadContext:
    """One read of ZooKeeper.

    Attributes:
        noticed: By ZooKeeper's clock: when the first watch for this read fired.
        at: When it was read. All of it had happened by then.
        continuous: Watches were set since the read before: only milliseconds are between them.
        settle_ms: How long a state must be unchanged before it is accepted.
    """

    cluster: str
    noticed: int
    at: int
    continuous: bool
    settle_ms: int
    times: TransactionTimes

    def removed_at(self, pzxid: int, *, alone: bool) -> int:
        """Return when the last removal from a folder had happened for certain.

        Args:
            pzxid: The folder's last change.
            alone: It was the only one: then the watch fired for it, and has its time.
        """
        at = self.noticed if alone else self.at
        later, sooner = self.times.not_after(pzxid), self.times.not_before(pzxid)
        if later is not None:
            at = min(at, later)
        return at if sooner is None else max(at, sooner)
