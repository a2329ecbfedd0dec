"""Shell: what is common to all that is told of one look. No I/O here."""

from __future__ import annotations

from dataclasses import dataclass

from streaming.metaq.times import TransactionTimes


@dataclass(frozen=True)
class Look:
    """One look at ZooKeeper.

    Attributes:
        at: By ZooKeeper's clock: when what is seen was noticed. All of it had happened by then.
        continuous: Watches have stood since the look before: nothing but moments lies between them.
        settle_ms: How long something must stand before it is believed.
    """

    cluster: str
    at: int
    continuous: bool
    settle_ms: int
    times: TransactionTimes

    def removed_at(self, pzxid: int) -> int:
        """Answer when a removal had happened for certain: as noticed, or sooner where a later transaction tells."""
        known = self.times.not_after(pzxid)
        return self.at if known is None else min(self.at, known)
