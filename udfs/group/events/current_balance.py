"""Core: the balance of a group's queues and its findings, evaluated between rebalances. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from udfs.group.assignment.balance import balance_of
from udfs.group.assignment.metadata_age import unshown_queues
from udfs.group.assignment.target_assignment import QueuesByTopic
from udfs.group.batch.finding_causes import with_causes
from udfs.group.batch.findings import RULES, Found
from udfs.group.decision.outcome import outcome_of_balance
from udfs.group.state.group import Owners, key_of
from udfs.group.state.view import GroupView
from udfs.model.journal import GroupChanged


def with_balance(
    view: GroupView,
    row: GroupChanged,
    owners: Owners,
    topic_queues: QueuesByTopic,
    at: int,
    event_id: str | None,
    grown: Sequence[str] = (),
) -> tuple[GroupChanged, list[tuple[str, Found | None]]]:
    """Return the group's row with the figures of an assignment, and the findings that depend on them.

    The findings leave out queues that metadata shows but members need not know yet; the figures count them.

    Args:
        topic_queues: Queues of the topics that members subscribe to. event_id: The event that shows the change, if any.
        grown: Topics that grew and whose new queues no generation has assigned.
    """
    group = view.group
    queues = [key_of(info, view.system, name) for name, infos in topic_queues.items() for info in infos]
    balance = balance_of(view, owners, queues)
    row = msgspec.structs.replace(
        row, idle_members=balance.idle, unassigned_queues=balance.unassigned, spread=balance.spread
    )
    outcome = outcome_of_balance(view, row, at, owners, queues, topic_queues, event_id)
    outcome.grown = grown
    evaluated = [
        (kind, rule(outcome))
        for kind, rule in RULES
        if kind == "unassigned_queues" or (kind == "idle_members" and not group.revoked_pending)
    ]
    unshown = unshown_queues(view, {topic: len(infos) for topic, infos in topic_queues.items()})
    row = msgspec.structs.replace(row, unassigned_queues=balance.unassigned + unshown)
    return row, with_causes(evaluated, group.findings)
