"""Shell: a group as the tables have it right after one of its rebalances, as the events that restore it. No I/O."""

from __future__ import annotations

import json

from streaming.history.group_rows import GroupRows, is_at
from streaming.history.member_events import due
from streaming.tables.schema import Row
from streaming.views.member_descriptions import description
from udfs.model.events import GroupSettings, GroupSnapshot, MemberInfo, QueueRef, event_fields
from udfs.model.group_api import DueEvent
from udfs.model.systems import System


def state_at(rows: GroupRows, system: System, time_ms: int) -> list[DueEvent]:
    """Return events of a time of a rebalance: what was set for the group, and its members and owners after it."""
    row = next(row for row in reversed(rows.rebalances) if row["event_time"] <= time_ms)
    settings = json.loads(row["settings"])
    fields = event_fields(system, rows.cluster, time_ms)
    source = row["generation_source"]
    owners = rows.owners_at(time_ms, "computed" if source == "counted" else "reported")
    present = [session for session in rows.sessions if is_at(session, "joined_at", "left_at", time_ms)]
    restored = GroupSnapshot(
        **fields,
        group=rows.group_id,
        restored=True,
        generation=row["generation"],
        generation_source=source,
        state="Stable" if present else "Empty",
        strategy=row["strategy"] if source == "reported" else settings.get("strategy"),
        leader=row["leader"],
        last_rebalance_id=row["rebalance_id"],
        members=tuple(_info(session, time_ms) for session in present),
        assignments={
            session["member_id"]: tuple(
                QueueRef(span["topic"], span["queue_id"], span["broker"])
                for span in owners.get(session["member_id"], [])
            )
            for session in present
        },
    )
    named = GroupSettings(
        **fields,
        group=rows.group_id,
        mode=row["mode"],
        strategy=settings.get("strategy"),
        strategy_settings=settings.get("settings"),
        inferred=bool(settings.get("inferred")),
    )
    return [due(named, None, "before"), due(restored, None, "before")]


def _info(session: Row, time_ms: int) -> MemberInfo:
    return MemberInfo(
        member_id=session["member_id"],
        joined_at=session["joined_at"],
        last_heartbeat_at=time_ms,
        lives_by=session["lives_by"],
        **description(session, time_ms),
    )
