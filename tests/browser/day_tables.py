"""Tables for a browser to look at: the recorded day of simulated fleets, and groups with hostile names."""

from __future__ import annotations

from glob import escape
from pathlib import Path

from deltalake import write_deltalake

from streaming.tables.arrow_rows import to_arrow
from streaming.tables.schema import TABLES, Row
from tests.dashboard.hostile import HOSTILE
from tests.simulation.core_run import CoreRun
from tests.simulation.recorded_day import RULES, batches, play, tables_of
from tests.streaming.tables.signs import leave_recording_sign

T0 = 1_767_225_600_000
MINUTE_MS = 60_000
# These columns hold the times of events: every row needs an event at least as new as itself.
_EVENT_TIMES = ("event_time", "last_rebalance_at", "joined_at", "left_at", "valid_from", "opened_at", "closed_at")


def write_day(root: Path) -> None:
    """Write the tables that follow from the recorded day."""
    run = play(CoreRun(RULES), batches())
    for name, rows in {**tables_of(run), "rebalances": run.rows()}.items():
        write_rows(root, name, list(rows))


def write_rows(root: Path, name: str, rows: list[Row]) -> None:
    """Append rows to a table, times in epoch ms, and leave the sign of a job that has read a recording of them."""
    newest: dict[str, int] = {}
    for row in rows:
        if row.get("cluster") is not None:
            times = [row[name] for name in _EVENT_TIMES if row.get(name) is not None]
            newest[row["cluster"]] = max(newest.get(row["cluster"], T0), *times, T0)
    leave_recording_sign(root, newest, newest)
    write_table(root, name, rows)


def write_table(root: Path, name: str, rows: list[Row]) -> None:
    """Append rows to a table, times in epoch ms."""
    write_deltalake(str(root / name), to_arrow(TABLES[name], rows), mode="append")


def rebalance(cluster: str, group: str, name: str, at: int, member: str, topic: str = "t") -> Row:
    """Return a row of ``rebalances``."""
    trigger = {
        "kind": "member_joined",
        "member_id": member,
        "topic": topic,
        "detail": member,
        "client": member,
        "event_id": f"event-{name}",
    }
    numbers = dict.fromkeys(("queues_kept", "queues_assigned", "queues_revoked", "queues_moved"), 1)
    return {
        **numbers,
        "rebalance_id": name,
        "cluster": cluster,
        "system": "kafka",
        "group_id": group,
        "generation": 1,
        "generation_source": "counted",
        "event_time": at,
        "detected_at": at + 2_000,
        "trigger": "member_joined",
        "triggers": [trigger],
        "strategy": "kafka.range",
        "mode": "clustering",
        "status": "completed",
        "members_before": 0,
        "members_after": 1,
    }


def write_hostile(root: Path) -> None:
    """Write one group for each hostile id, and use that id for everything in the group that has a name."""
    rows: dict[str, list[Row]] = {name: [] for name in TABLES}
    for number, name in enumerate(HOSTILE):
        at = T0 + number * MINUTE_MS
        group = {"cluster": f"c{name}" if number % 10 == 0 and len(name) < 1_000 else "c", "group_id": name}
        span = {
            "topic": name,
            "broker": name,
            "queue_id": 0,
            "member_id": name,
            "generation": 1,
            "rebalance_id": f"r{number}",
        }
        columns = {"members": 1, "queues": 1, "idle_members": 0, "unassigned_queues": 0, "spread": 0, "generation": 1}
        state = {"system": "kafka", "state": "stable", "mode": "clustering", "strategy": name, "last_rebalance_at": at}
        rows["groups"].append({**group, **columns, **state, "last_rebalance_id": f"r{number}"})
        rows["members"].append(
            {**group, **dict.fromkeys(("member_id", "client_id", "client", "host", "address", "instance_id"), name)}
            | {"joined_at": at}
        )
        rows["assignments"].append({**group, **span, "origin": "computed", "valid_from": at, "inferred": False})
        rows["rebalances"].append(rebalance(group["cluster"], name, f"r{number}", at, name, name))
        rows["findings"].append(
            {**group, "finding_id": f"f{number}", "kind": "odd", "severity": "warning", "message": name, "advice": name}
            | {"evidence": [name], "opened_at": at}
        )
        rows["rejected_events"].append(
            {
                **group,
                "source": name,
                "position": name,
                "raw": name,
                "reason": "not_json",
                "detail": name,
                "seen_at": at,
            }
        )
        rows["group_minutes"].append({**group, **columns, "minute": at, "rebalances": 1, "queues_moved": 1})
        rows["annotations"].append(
            {"annotation_id": name, "kind": name, "text": name, "url": name, "cluster": group["cluster"]}
            | {"groups": [escape(name)], "client_ids": [], "hosts": [], "began_at": at, "ended_at": at}
            | {"written_at": at, "first_written_at": at, "began_inferred": False}
        )
    for name, some in rows.items():
        if some:
            write_rows(root, name, some)
