"""Core: topics that grew without a timely generation of their group. No I/O."""

from __future__ import annotations

import msgspec

from udfs.group.assignment.metadata_age import NOT_FOLLOWED, known_queues, metadata_age_ms
from udfs.group.assignment.target_assignment import topics_with_metadata
from udfs.group.batch.context import GroupContext
from udfs.group.decision.unread import note_unread
from udfs.group.events.current_balance import with_balance
from udfs.group.state.group import Evidence
from udfs.group.state.state_machine import GroupKind
from udfs.group.state.view import GroupView


def show_growth(context: GroupContext, at: int) -> None:
    """Count the queues that metadata shows before a generation does; until then they have no owner."""
    group, row = context.group, context.group.row
    if row is None or row.queues is None or not group.members:
        return
    queues = known_queues(context, group.counts)
    unassigned = row.unassigned_queues
    if unassigned is not None:
        unassigned = max(0, unassigned + queues - row.queues)
    context.write_row(at, msgspec.structs.replace(row, queues=queues, unassigned_queues=unassigned))
    note_unread(context, at)


def growth_outlasts_metadata_at(view: GroupView) -> int | None:
    """Return when all members' metadata must show a growth that no generation has followed; None if there is none.

    While topics lack metadata, the whole generation is unknown, and so are the queues that it leaves out.
    """
    group = view.group
    grown = [evidence.time for evidence in group.evidence if _is_growth(evidence)]
    if not grown or not group.members or group.row is None or group.topics_without_metadata:
        return None
    if view.kind is not GroupKind.REPORTED:
        return None
    outlasted_at = min(grown) + metadata_age_ms(group.members.values())
    return max(outlasted_at, group.last_rebalance_at or 0, group.last_applied or 0)


def show_unfollowed_growth(context: GroupContext, at: int) -> None:
    """Count the queues that no generation has assigned although the metadata of all members must show them."""
    group, row = context.group, context.group.row
    latest = at - metadata_age_ms(group.members.values())
    due = [evidence for evidence in group.evidence if _is_growth(evidence) and evidence.time <= latest]
    context.use_up_evidence(
        [
            msgspec.structs.replace(evidence, detail=NOT_FOLLOWED) if evidence in due else evidence
            for evidence in group.evidence
        ]
    )
    shown = topics_with_metadata(context, at)
    grown = {
        evidence.topic: evidence
        for evidence in due
        if evidence.topic is not None and len(shown.get(evidence.topic, ())) > group.counts.get(evidence.topic, 0)
    }
    if row is None or not grown:
        return
    topic_queues = {
        topic: queues if topic in grown else queues[: group.counts.get(topic, 0)] for topic, queues in shown.items()
    }
    counts = {topic: len(queues) for topic, queues in topic_queues.items()}
    row = msgspec.structs.replace(row, queues=known_queues(context, counts))
    if group.has_reported or group.recomputable:
        owners = group.reported if group.has_reported else group.computed
        event_id = next(iter(grown.values())).event_id
        row, findings = with_balance(context, row, owners, topic_queues, at, event_id, grown=sorted(grown))
        context.set_findings(findings, at)
    context.write_row(at, row)


def _is_growth(evidence: Evidence) -> bool:
    return evidence.kind == "queue_count_changed" and evidence.topic is not None and evidence.detail is None
