"""Journals for tests of the tables: changes as a group would tell them, numbered by themselves."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec

from streaming.tables.schema import Row
from udfs.model import journal

T0 = 1_767_225_600_000  # 2026-01-01T00:00:00Z


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
    told = {"kind": json.loads(body)["kind"], "batch": batch, "body": body}
    return {name: getattr(change, name) for name in ("cluster", "group_id", "subject", "number", "event_time")} | told


def rows(changes: Iterable[journal.Change], batch: int = 0) -> list[Row]:
    return [row(change, batch) for change in changes]


def joined(member: str, at: int, **more: object) -> journal.MemberOpened:
    return journal.MemberOpened(member_id=member, joined_at=T0 + at, **more)


def gone(member: str, joined_at: int, at: int, reason: journal.LeftReason = "left") -> journal.MemberClosed:
    return journal.MemberClosed(
        member_id=member, joined_at=T0 + joined_at, left_at=T0 + at, left_reason=reason, last_heartbeat_at=T0 + at
    )


def assigned(
    queue: int, member: str, at: int, generation: int = 1, origin: journal.Origin = "computed", **more: Any
) -> journal.QueueAssigned:
    return journal.QueueAssigned(
        topic="orders",
        broker=None,
        queue_id=queue,
        member_id=member,
        origin=origin,
        generation=generation,
        rebalance_id=f"r{generation}",
        valid_from=T0 + at,
        **more,  # type: ignore[arg-type]
    )


def resumed(queue: int, member: str, pause_ms: int, origin: journal.Origin = "reported") -> journal.QueueResumed:
    return journal.QueueResumed(
        topic="orders", broker=None, queue_id=queue, member_id=member, origin=origin, pause_ms=pause_ms
    )


def released(queue: int, member: str, at: int, origin: journal.Origin = "computed") -> journal.QueueReleased:
    return journal.QueueReleased(
        topic="orders", broker=None, queue_id=queue, member_id=member, origin=origin, valid_to=T0 + at
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
