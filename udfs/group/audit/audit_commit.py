"""Core: the commit of audits, and of generations that consist only of a row and an audit. No I/O."""

from __future__ import annotations

from udfs.group.audit.audit import audit_of_late, audit_of_overtaken, brief
from udfs.group.batch.context import GroupContext
from udfs.group.state.strategy_verdict import verdict_of
from udfs.model.audits import Audited
from udfs.model.journal import Rebalance


def commit_audit(context: GroupContext, audit: Audited | None, at: int | None = None) -> None:
    """Write the current generation's audit at that generation's time; ``at``: also write the group's row then."""
    if audit is None:
        return
    context.group.audit = brief(audit)
    context.write(audit.rebalanced_at, audit)
    if at is not None and context.group.row is not None:
        context.write_row(at, context.group.row)


def end_audits(context: GroupContext, at: int) -> None:
    """Write the audit of the current generation, if still pending, because another generation overtakes it."""
    commit_audit(context, audit_of_overtaken(context, at))
    context.group.verdict, context.group.audit = verdict_of(context.group), None


def commit_overtaken(context: GroupContext, row: Rebalance, ordinals: dict[str, int]) -> None:
    """Write the row of a generation that newer ones overtook; the current state stays unchanged."""
    group = context.group
    context.output.rebalances.append(row)
    group.rebalance_ordinals = ordinals
    group.last_rebalance_at = max(row.event_time, group.last_rebalance_at or row.event_time)
    if row.members_after:
        context.write(row.event_time, audit_of_late(row))
