"""Core: the verdict on a group's strategy from the audits of its generations. No I/O.

``proven``: the recomputed assignment was the reported one. ``contradicted``: it was not, for a reason within the
strategy itself. ``not_recomputable``: there is nothing to compare. A generation that proves nothing about it (one
member, members that have not followed yet, topics without metadata) changes no verdict.
"""

from __future__ import annotations

from typing import Final

import msgspec

from udfs.group.state.audit_results import CurrentAudit, StrategyVerdict
from udfs.group.state.group import Group
from udfs.model.journal import GroupChanged

# A contradicted strategy counts as proven again after this many agreeing generations in a row.
PROVEN_AGAIN_AFTER: Final = 10


def verdict_after(
    before: StrategyVerdict | None, strategy: str | None, audit: CurrentAudit | None
) -> StrategyVerdict | None:
    """Return the verdict on a strategy after one more audit.

    Args:
        strategy: The audited generation's strategy. A new strategy restarts the verdict.

    Example:
        >>> verdict_after(None, "kafka.range", CurrentAudit("agrees", True, 1_000)).kind
        'proven'
    """
    if audit is None:
        return before
    if before is not None and before.strategy != strategy:
        before = None
    if not audit.is_evidence and (before is not None or audit.verdict != "not_recomputable"):
        return before
    if audit.verdict == "agrees":
        return _after_agreement(before, strategy, audit)
    kind = "contradicted" if audit.verdict == "differs" else "not_recomputable"
    fresh = StrategyVerdict(strategy, kind, 1, audit.at, audit.reason)
    if before is None or before.kind != kind:
        return fresh
    return msgspec.structs.replace(fresh, generations=before.generations + 1, since=before.since)


def _after_agreement(before: StrategyVerdict | None, strategy: str | None, audit: CurrentAudit) -> StrategyVerdict:
    if before is not None and before.kind == "proven":
        return msgspec.structs.replace(before, generations=before.generations + 1)
    if before is None or before.kind != "contradicted":
        return StrategyVerdict(strategy, "proven", 1, audit.at)
    agreeing, since = before.agreeing + 1, before.agreeing_since or audit.at
    if agreeing < PROVEN_AGAIN_AFTER:
        return msgspec.structs.replace(before, agreeing=agreeing, agreeing_since=since)
    return StrategyVerdict(strategy, "proven", agreeing, since)


def verdict_of(group: Group) -> StrategyVerdict | None:
    """Return the verdict on a group's strategy, including the current generation."""
    return verdict_after(group.verdict, group.last_strategy, group.audit)


def with_verdict(row: GroupChanged, group: Group) -> GroupChanged:
    """Return a group's row with its strategy's state: the library that assigned, the audits' verdict."""
    found = verdict_of(group)
    return msgspec.structs.replace(
        row,
        library=None if row.strategy is None else group.last_library,
        strategy_verdict=None if found is None else found.kind,
        verdict_generations=None if found is None else found.generations,
        verdict_from=None if found is None else found.since,
        verdict_reason=None if found is None else found.reason,
    )
