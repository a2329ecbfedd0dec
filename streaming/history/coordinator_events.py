"""Shell: the generations of a group of Kafka's classic protocol, as snapshots of its coordinator. No I/O.

A generation is a snapshot with its members as they were described then, and the assignment that was reported. What was
known of departures comes before it, as events. Between two generations there are snapshots of the same one: where a
static member came back under a new id, and where the reported owners changed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

from streaming.history.group_rows import GroupRows, is_at
from streaming.history.member_events import due
from streaming.history.named_causes import NamedCauses
from streaming.tables.schema import Row
from streaming.views.member_descriptions import description
from udfs.model.comparability import NOT_REPORTED
from udfs.model.events import GroupSnapshot, MemberInfo, MemberLeft, QueueRef, event_fields
from udfs.model.group_api import DueEvent
from udfs.model.systems import System

_DEPARTED: Final = ("member_left", "session_expired")


def coordinator_events(rows: GroupRows, system: System, causes: NamedCauses) -> Iterator[DueEvent]:
    """Yield the events of a group's generations and of what was known of departures before them, in no order."""
    ended = {(session["member_id"], session.get("left_at")) for session in rows.sessions}
    for row in rows.rebalances:
        yield _snapshot(rows, system, row, row["event_time"])
        for named in row["triggers"]:
            if named["kind"] in _DEPARTED:
                cause = causes.take((named["kind"],), row["event_time"], member_id=named["member_id"])
                times = [left for member, left in ended if member == named["member_id"] and left is not None]
                left_at = max((at for at in times if at <= row["event_time"]), default=row["event_time"])
                event = MemberLeft(
                    **event_fields(system, rows.cluster, left_at),
                    group=rows.group_id,
                    member_id=named["member_id"],
                    how="expired" if named["kind"] == "session_expired" else "left",
                    reason=named["detail"],
                )
                yield due(event, cause, named["member_id"])
    yield from _same_generations(rows, system)
    yield from _emptied(rows, system)


def _emptied(rows: GroupRows, system: System) -> Iterator[DueEvent]:
    """Yield when a coordinator showed a new group without members: generation 0 is no rebalance, but ends sessions."""
    for before, row in itertools.pairwise(rows.rebalances):
        if before["members_after"] and not row["members_before"]:
            since, until = before["event_time"], row["event_time"]
            ends = [left for session in rows.sessions if since < (left := session.get("left_at") or 0) <= until]
            event = GroupSnapshot(
                **event_fields(system, rows.cluster, max(ends, default=until - 1)),
                group=rows.group_id,
                generation=0,
                state="Empty",
            )
            yield due(event, None, "0")


def _same_generations(rows: GroupRows, system: System) -> Iterator[DueEvent]:
    """Yield what changed within a generation."""
    decided = [row["event_time"] for row in rows.rebalances]
    successors = {session["joined_at"] for session in rows.sessions if session.get("former_member_id") is not None}
    moved = {span["valid_from"] for span in rows.spans if span["origin"] == "reported"}
    for time_ms in sorted((successors | moved).difference(decided)):
        current = [row for row in rows.rebalances if row["event_time"] < time_ms]
        if current:
            yield _snapshot(rows, system, current[-1], time_ms)


def _snapshot(rows: GroupRows, system: System, row: Row, time_ms: int) -> DueEvent:
    """Return the snapshot of a recorded generation at a time."""
    present = [session for session in rows.sessions if is_at(session, "joined_at", "left_at", time_ms)]
    owners = rows.owners_at(time_ms, "reported")
    assignments = {
        session["member_id"]: tuple(
            QueueRef(span["topic"], span["queue_id"], span["broker"]) for span in owners.get(session["member_id"], [])
        )
        for session in present
    }
    strategy = row["strategy"]
    event = GroupSnapshot(
        **event_fields(system, rows.cluster, time_ms),
        group=rows.group_id,
        generation=row["generation"],
        state="Stable" if present else "Empty",
        strategy=None if strategy is None else strategy.removeprefix(f"{system}."),
        leader=row["leader"],
        members=tuple(
            MemberInfo(member_id=session["member_id"], **description(session, time_ms)) for session in present
        ),
        # An empty generation assigns nothing, reported or not.
        assignments=None if row["agrees_reason"] == NOT_REPORTED or not present else assignments,
    )
    return due(event, None, str(row["generation"]))
