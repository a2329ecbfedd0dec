"""The core's rows of a group beside its owners: rebalances, findings, pauses."""

from __future__ import annotations

from streaming.collectors.rocketmq.options import RETRY_PREFIX
from tests.kit.rocketmq_members import Queue
from tests.simulation.core_run import CoreRun
from tests.udfs.group.single_spans import SingleSpans
from udfs.model.journal import FindingClosed, FindingOpened, Rebalance
from udfs.model.spans import QueueAssigned, QueueResumed


def rebalances_of(run: CoreRun, group: str) -> list[Rebalance]:
    """Return a group's rebalances, in order."""
    return sorted((row for row in run.rebalances if row.group_id == group), key=lambda row: row.generation)


def causes_of(run: CoreRun, group: str) -> list[list[tuple[str, str | None]]]:
    """Return why a group was assigned anew, time by time: kinds, and the member or topic of each.

    Its retry topic is left out: brokers make it when the first member joins, and it is seen then or a little later.
    """
    reported = [
        [
            (trigger.kind, trigger.member_id or trigger.topic)
            for trigger in row.triggers
            if not (trigger.topic or "").startswith(RETRY_PREFIX)
        ]
        for row in rebalances_of(run, group)
    ]
    return [causes for causes in reported if causes]


def opened_in(run: CoreRun, group: str) -> set[str]:
    """Return the kinds of all that was ever wrong with a group."""
    return {finding.finding for finding in _opened(run, group).values()}


def found_in(run: CoreRun, group: str) -> set[str]:
    """Return the kinds of problems that a group has in the end."""
    bodies = [change.body for change in run.changes if change.group_id == group]
    closed = {body.finding_id for body in bodies if isinstance(body, FindingClosed)}
    return {finding.finding for key, finding in _opened(run, group).items() if key not in closed}


def pauses_of(run: CoreRun, group: str, member_id: str) -> dict[Queue, int]:
    """Return for how long each queue stood still that a member took over, the last time, where that was seen."""
    return {
        (body.topic, body.broker or "", body.queue_id): body.pause_ms
        for change in SingleSpans().of(run.changes)
        if change.group_id == group and isinstance(body := change.body, QueueAssigned | QueueResumed)
        if body.member_id == member_id and body.origin == "reported" and body.pause_ms is not None
    }


def _opened(run: CoreRun, group: str) -> dict[str, FindingOpened]:
    bodies = [change.body for change in run.changes if change.group_id == group]
    return {body.finding_id: body for body in bodies if isinstance(body, FindingOpened)}
