"""Shell: what is common to all that is told of one look. No I/O here."""

from __future__ import annotations

from dataclasses import dataclass

from streaming.metaq.times import TransactionTimes


@dataclass(frozen=True)
class Look:
    """One look at ZooKeeper.

    Attributes:
        noticed: By ZooKeeper's clock: when the first watch fired of what this look shows.
        at: When it was read. All of it had happened by then.
        continuous: Watches have stood since the look before: nothing but moments lies between them.
        settle_ms: How long something must stand before it is believed.
    """

    cluster: str
    noticed: int
    at: int
    continuous: bool
    settle_ms: int
    times: TransactionTimes

    def removed_at(self, pzxid: int, *, alone: bool) -> int:
        """Answer when the last removal from a folder had happened for certain.

        Args:
            pzxid: The folder's last change.
            alone: It was the only one: then the watch fired for it, and told its time.
        """
        at = self.noticed if alone else self.at
        later, sooner = self.times.not_after(pzxid), self.times.not_before(pzxid)
        if later is not None:
            at = min(at, later)
        return at if sooner is None else max(at, sooner)
