"""Journals for tests of the tables: changes as a group would write them, numbered by themselves."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec

from streaming.tables.schema import Row
from udfs.model import journal
from udfs.model.audits import Audited, AuditedQueue
from udfs.model.spans import (
    AssignedRun,
    Origin,
    QueueAssigned,
    QueueCost,
    QueueReleased,
    QueueResumed,
    QueuesReassigned,
    ReassignedTopic,
    ReleasedRun,
)

T0 = 1_767_225_600_000  # 2026-01-01T00:00:00Z

# For the first member: three queues after a pause of 7 ms, and one after a pause of about a second.
PAUSED = (AssignedRun(0, 2, 0, 0, 7), AssignedRun(3, 3, 0, 0, None, 1_000))


class Journal:
    """Makes changes; each history counts its own."""

    def __init__(self) -> None:
        self._numbers: Counter[tuple[str, str | None, str | None]] = Counter()

    def change(
        self, at: int, body: journal.Body, group: str | None = "g1", cluster: str = "c1", subject: str | None = None
    ) -> journal.Change:
        history = (cluster, group, subject)
        self._numbers[history] += 1
        return journal.Change(
            cluster=cluster,
            group_id=group,
            subject=subject,
            number=self._numbers[history],
            event_time=T0 + at,
            body=body,
        )


def row(change: journal.Change, batch: int = 0) -> Row:
    """Return the change as a row of ``changes``."""
    body = msgspec.json.encode(change.body).decode()
    reported = {"kind": json.loads(body)["kind"], "batch": batch, "body": body}
    return {
        name: getattr(change, name) for name in ("cluster", "group_id", "subject", "number", "event_time")
    } | reported


def rows(changes: Iterable[journal.Change], batch: int = 0) -> list[Row]:
    return [row(change, batch) for change in changes]


def joined(member: str, at: int, **more: object) -> journal.MemberOpened:
    return journal.MemberOpened(member_id=member, joined_at=T0 + at, **more)


def left(member: str, joined_at: int, at: int, reason: journal.LeftReason = "left") -> journal.MemberClosed:
    return journal.MemberClosed(
        member_id=member, joined_at=T0 + joined_at, left_at=T0 + at, left_reason=reason, last_heartbeat_at=T0 + at
    )


def assigned(
    queue: int, member: str, at: int, generation: int = 1, origin: Origin = "computed", **more: Any
) -> QueuesReassigned:
    """Return that a span opens: of a topic ``orders``, unless ``more`` names another.

    Args:
        more: ``topic``, ``broker``, ``instance_id``, ``inferred``; pauses and outages; what it costs.
    """
    costs = {name: more.pop(name) for name in QueueCost.__struct_fields__ if name in more}
    return QueuesReassigned(
        origin=origin,
        at=T0 + at,
        generation=generation,
        rebalance_id=f"r{generation}",
        members=[(member, more.pop("instance_id", None))],
        topics=[
            ReassignedTopic(
                topic=more.pop("topic", "orders"),
                broker=more.pop("broker", None),
                released=[],
                inferred=more.pop("inferred", False),
                costs=[QueueCost(queue, **costs)] if costs else [],
                assigned=[AssignedRun(queue, queue, 0, **more)],
            )
        ],
    )


def resumed(queue: int, member: str, pause_ms: int, origin: Origin = "reported") -> QueueResumed:
    return QueueResumed(topic="orders", broker=None, queue_id=queue, member_id=member, origin=origin, pause_ms=pause_ms)


def released(queue: int, member: str, at: int, origin: Origin = "computed") -> QueuesReassigned:
    """Return that a member's span of a queue of ``orders`` ends."""
    return QueuesReassigned(
        origin=origin,
        at=T0 + at,
        generation=1,
        rebalance_id="r1",
        members=[(member, None)],
        topics=[ReassignedTopic("orders", None, released=[ReleasedRun(queue, queue, 0)], assigned=[])],
    )


def of_one_run(span: QueueAssigned | QueueReleased) -> QueuesReassigned:
    """Return the change that opens or ends this span alone."""
    if isinstance(span, QueueReleased):
        topic = ReassignedTopic(span.topic, span.broker, [ReleasedRun(span.queue_id, span.queue_id, 0)], [])
        at, generation, rebalance_id, instance_id = span.valid_to, 0, "", None
    else:
        costs = {name: getattr(span, name) for name in QueueCost.__struct_fields__ if name != "queue_id"}
        run = AssignedRun(span.queue_id, span.queue_id, 0)
        for name in ("pause_ms", "pause_estimated_ms", "outage_min_ms", "outage_max_ms"):
            setattr(run, name, getattr(span, name))
        topic = ReassignedTopic(
            span.topic, span.broker, [], [run], inferred=span.inferred, costs=[QueueCost(span.queue_id, **costs)]
        )
        at, generation, rebalance_id = span.valid_from, span.generation, span.rebalance_id
        instance_id = span.instance_id
    return QueuesReassigned(
        origin=span.origin,
        at=at,
        generation=generation,
        rebalance_id=rebalance_id,
        members=[(span.member_id, instance_id)],
        topics=[topic],
    )


def reassigned(
    at: int = 0,
    ends: Iterable[ReleasedRun] = (),
    runs: Iterable[AssignedRun] = (),
    members: Iterable[tuple[str, str | None]] = (("a", "i"),),
    origin: Origin = "reported",
) -> QueuesReassigned:
    return QueuesReassigned(
        origin=origin,
        at=T0 + at,
        generation=1,
        rebalance_id="r1",
        members=list(members),
        topics=[ReassignedTopic("orders", None, list(ends), list(runs))],
    )


def rebalanced(members: int = 1, moved: int = 0, pause_ms: int | None = None) -> journal.Rebalanced:
    return journal.Rebalanced(
        rebalance_id="r",
        members=members,
        queues_moved=moved,
        queue_pause_ms=pause_ms,
        idle_members=0,
        unassigned_queues=0,
        spread=0,
    )


def stable(members: int, generation: int = 1, at: int = 0) -> journal.GroupChanged:
    return journal.GroupChanged(
        system="kafka",
        state="stable" if members else "empty",
        mode="clustering",
        strategy="kafka.range",
        generation=generation,
        generation_source="counted",
        members=members,
        queues=4,
        last_rebalance_at=T0 + at,
        last_rebalance_id=f"r{generation}",
    )


def audited(rebalance_id: str, at: int, missing: int = 0) -> Audited:
    queues = [AuditedQueue("orders", None, queue, "missing", ["a"], []) for queue in range(missing)]
    return Audited(
        rebalance_id=rebalance_id,
        system="kafka",
        generation=1,
        rebalanced_at=T0 + at,
        audited_at=T0 + at,
        strategy="kafka.range",
        library=None,
        verdict="differs" if missing else "agrees",
        members=2,
        queues=4,
        queues_differing=missing,
        missing=missing,
        differing=queues,
    )


def of_one_group(*bodies: tuple[int, journal.Body]) -> list[journal.Change]:
    history = Journal()
    return [history.change(at, body) for at, body in bodies]


def a_history(random_source: random.Random, length: int) -> list[journal.Change]:
    """Two groups whose members join, leave and come back, and whose queues move between them."""
    history, changes, time = Journal(), [], 0
    owner: dict[tuple[str, int], str] = {}
    open_sessions: dict[tuple[str, str], int] = {}
    closed: dict[tuple[str, str], int] = {}
    for _ in range(length):
        time += random_source.choice([0, 0, 1, 30_000])
        group, member, queue = (
            random_source.choice(["g1", "g2"]),
            random_source.choice("abc"),
            random_source.randrange(3),
        )

        def add(body: journal.Body, group: str = group, time: int = time) -> None:
            changes.append(history.change(time, body, group=group))

        match random_source.randrange(6):
            case 0 if (group, member) not in open_sessions and closed.get((group, member)) != time:
                open_sessions[group, member] = time
                add(joined(member, time))
            case 1 if (group, member) in open_sessions:
                closed[group, member] = begin = open_sessions.pop((group, member))
                add(left(member, begin, time, "expired"))
                if time > begin and random_source.random() < 0.5:
                    add(journal.MemberReopened(member_id=member, joined_at=T0 + begin))
                    open_sessions[group, member] = begin
            case 2:
                held = owner.pop((group, queue), None)
                if held is not None:
                    add(released(queue, held, time))
                if held != member:
                    owner[group, queue] = member
                    add(assigned(queue, member, time, pause_ms=random_source.choice([None, 0, 4])))
                    if random_source.random() < 0.5:
                        add(resumed(queue, member, 9, origin="computed"))
            case 3:
                add(rebalanced(random_source.randrange(4), random_source.randrange(3), random_source.choice([None, 5])))
                add(stable(random_source.randrange(4), generation=time))
                add(audited(f"{group}-{time}", time, missing=time % 3))
                add(an_episode(f"{group}-{time // 9}", time))
            case 4 if (group, member) in open_sessions:
                body = journal.MemberChanged(
                    member_id=member, joined_at=T0 + open_sessions[group, member], rack=str(time)
                )
                add(body)
            case _ if random_source.random() < 0.2:
                add(journal.GroupRemoved())
            case _:
                changes.append(annotated(time, f"of {group}", text=member))
    return changes


def an_episode(episode_id: str, at: int) -> journal.EpisodeChanged:
    """Return an episode as of a time."""
    return journal.EpisodeChanged(
        episode_id=episode_id,
        episode="same_client_again",
        began_at=T0,
        last_at=T0 + at,
        text=f"a came back {at} times",
        rebalances=at,
        queues_moved=2 * at,
        earlier_rebalance_ids=("r1", "r2"),
    )


def annotated(
    at: int,
    annotation_id: str,
    *,
    text: str = "",
    cluster: str | None = None,
    began: int | None = None,
    ended: int | None = None,
) -> journal.Change:
    """Return a version of an annotation."""
    body = journal.AnnotationWritten(
        annotation_id=annotation_id,
        annotation="deploy",
        text=text,
        url=None,
        cluster=cluster,
        groups=("orders*",),
        client_ids=(),
        hosts=(),
        began_at=None if began is None else T0 + began,
        ended_at=None if ended is None else T0 + ended,
        written_at=T0 + at,
    )
    number = T0 + at
    return journal.Change(cluster="", group_id=None, subject=annotation_id, number=number, event_time=number, body=body)
