"""Steps in the life of a group whose members assign by themselves, compared with the core's rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streaming.collectors.rocketmq.options import RETRY_PREFIX
from tests.simulation.core_run import CoreRun
from tests.udfs.group.single_spans import SingleSpans
from udfs.model.audits import Audited
from udfs.model.journal import Rebalance
from udfs.model.spans import QueueAssigned, QueueReleased

Queue = tuple[str, str, int]  # topic, broker, number
Cause = tuple[str, str | None]
_ENDS = ("member_left", "session_expired", "member_gone")


@dataclass(frozen=True)
class Step:
    """What happened since the step before, and who holds what now.

    Attributes:
        causes: Kinds of trigger, and the member or topic of each, of all rebalances since the step before.
        held: By member, as the members themselves say.
        at: A moment at which that was so, epoch ms.
    """

    what: str
    causes: frozenset[Cause]
    held: dict[str, list[Queue]]
    at: int


def check_steps(run: CoreRun, group: str, steps: Sequence[Step], *, any_end: bool = False) -> list[Rebalance]:
    """Compare what the core made of the events with the steps; return the rebalances after the last of them.

    Args:
        any_end: How a member departed does not matter, only that it did: it may have been between two polls.
    """
    rows = sorted(
        (rebalance for rebalance in run.rebalances if rebalance.group_id == group),
        key=lambda rebalance: rebalance.generation,
    )
    since = 0
    for step in steps:
        mine = [row for row in rows if since < row.event_time <= step.at]
        found, wanted = _causes(mine), step.causes
        if any_end:
            found, wanted = _with_one_departure(found), _with_one_departure(wanted)
        assert found == wanted, (step.what, mine)
        for origin in ("computed", "reported"):
            held = {name: queues for name, queues in own(held_at(run, group, origin, step.at)).items() if queues}
            assert held == {name: queues for name, queues in step.held.items() if queues}, (step.what, origin)
        if any(step.held.values()):
            current = [row for row in rows if row.event_time <= step.at][-1]
            assert verdict_at(run, current, step.at) == ("agrees" if current.mode == "clustering" else None), step.what
        since = step.at
    return [row for row in rows if row.event_time > since]


def verdict_at(run: CoreRun, row: Rebalance, at: int) -> str | None:
    """Return the verdict of a generation's audit as of a moment; None: there was none yet."""
    bodies = [change.body for change in run.changes]
    audits = [body for body in bodies if isinstance(body, Audited) and body.rebalance_id == row.rebalance_id]
    return next((audit.verdict for audit in reversed(audits) if audit.audited_at <= at), None)


def held_at(run: CoreRun, group: str, origin: str, at: int) -> dict[str, list[Queue]]:
    """Return who held what at a moment, by the spans of a journal."""
    open_since: dict[tuple[str, Queue], int] = {}
    held: set[tuple[str, Queue]] = set()
    for change in SingleSpans().of(run.changes):
        body = change.body
        if change.group_id != group or not isinstance(body, QueueAssigned | QueueReleased) or body.origin != origin:
            continue
        key = (body.member_id, (body.topic, body.broker or "", body.queue_id))
        if isinstance(body, QueueAssigned):
            open_since[key] = body.valid_from
        elif open_since.pop(key) <= at < body.valid_to:
            held.add(key)
    held |= {key for key, since in open_since.items() if since <= at}
    found: dict[str, list[Queue]] = {}
    for member, queue in sorted(held):
        found.setdefault(member, []).append(queue)
    return found


def own(held: Mapping[str, Sequence[Queue]]) -> dict[str, list[Queue]]:
    """Return the same without retry topics, which come a little behind the members."""
    return {name: [queue for queue in queues if not queue[0].startswith(RETRY_PREFIX)] for name, queues in held.items()}


def _causes(rows: Sequence[Rebalance]) -> frozenset[Cause]:
    return frozenset(
        (trigger.kind, trigger.member_id or trigger.topic)
        for row in rows
        for trigger in row.triggers
        if not (trigger.topic or "").startswith(RETRY_PREFIX)
    )


def _with_one_departure(causes: frozenset[Cause]) -> frozenset[Cause]:
    return frozenset(("member_gone" if kind in _ENDS else kind, name) for kind, name in causes)
