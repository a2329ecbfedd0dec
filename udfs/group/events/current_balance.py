"""Core: how evenly a group's queues are owned now, and the findings of that, evaluated between rebalances. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from udfs.group.assignment.balance import balance_of
from udfs.group.batch.context import GroupContext
from udfs.group.batch.findings import RULES, Outcome
from udfs.group.state.group import Owners, Queue
from udfs.model.journal import GroupChanged


def with_balance(
    context: GroupContext, row: GroupChanged, owners: Owners, queues: Sequence[Queue], at: int, event_id: str | None
) -> GroupChanged:
    """Return the group's row with the figures of an assignment; open and close the findings that depend on them.

    Args:
        queues: Of the topics that members subscribe to. event_id: The event that shows it, where one does.
    """
    group, balance = context.group, balance_of(context, owners, queues)
    outcome = Outcome(
        system=context.system,
        at=at,
        generation=group.current_generation,
        members=row.members or 0,
        queues=row.queues,
        unassigned=balance.unassigned,
        idle=balance.idle,
        handing_over=bool(group.revoked_pending),
        evidence=[event_id] if event_id else [],
    )
    for kind, rule in RULES:
        if kind == "unassigned_queues" or (kind == "idle_members" and not group.revoked_pending):
            context.set_finding(kind, rule(outcome), at)
    return msgspec.structs.replace(
        row, idle_members=balance.idle, unassigned_queues=balance.unassigned, spread=balance.spread
    )
