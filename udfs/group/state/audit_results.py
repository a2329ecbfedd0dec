"""Core: what a group remembers of its audits. No I/O."""

from __future__ import annotations

import msgspec

from udfs.model.audits import Verdict


class CurrentAudit(msgspec.Struct, array_like=True, frozen=True):
    """The result of the current generation's audit.

    Attributes:
        is_evidence: It counts for the strategy's verdict; an assignment to one member, or with members that have not
            followed yet, does not.
        digest: CRC-32 of the differences.
    """

    verdict: Verdict
    is_evidence: bool
    at: int
    reason: str | None = None
    digest: int = 0


class StrategyVerdict(msgspec.Struct, array_like=True, frozen=True):
    """The audits' verdict on the group's strategy, from the generations before the current one.

    Attributes:
        kind: ``proven``, ``contradicted`` or ``not_recomputable``. generations: The number of generations with it, from
            ``since`` on.
        agreeing: The number of consecutive generations that agreed since the last contradiction, from
            ``agreeing_since`` on.
    """

    strategy: str | None
    kind: str
    generations: int
    since: int
    reason: str | None = None
    agreeing: int = 0
    agreeing_since: int | None = None
