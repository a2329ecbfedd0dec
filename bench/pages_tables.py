"""Bench: tables of a large fleet for the pages: written at once, as the job would leave them, and always the same."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from deltalake import WriterProperties, write_deltalake

from streaming.tables import schema

HOUR_MS = 3_600_000
WINDOW_H = 24
CAUSES = ("member_joined", "member_left", "session_expired", "queue_count_changed")
SYSTEMS = ("kafka", "rocketmq", "metaq")
# One group is large: as many queues, and on average as many spans of each.
LARGE = "large"
LARGE_QUEUES = 1_000
LARGE_SPANS = 5_000
# Another has as many queues, and as many spans as a timeline draws.
CROWDED = "crowded"


@dataclass(frozen=True)
class PagesFleet:
    """How large the tables are; ``until_ms`` is their newest time."""

    groups: int = 10_000
    assignments: int = 1_000_000
    rebalances: int = 100_000
    members_per_group: int = 10
    crowded_spans: int = 50_000
    until_ms: int = 1_767_225_600_000

    def cluster(self, group: int) -> str:
        """Return the cluster of the n-th group."""
        return f"{SYSTEMS[group % 3]}-prod"

    def group(self, number: int) -> str:
        """Return the name of the n-th group; the first is the large one, the second the one with most spans."""
        return LARGE if number == 0 else CROWDED if number == 1 else f"group-{number:05d}"


def write_tables(fleet: PagesFleet, root: Path) -> None:
    """Write every table that pages read below a folder."""
    random = np.random.default_rng(1)
    for table, columns in (
        (schema.GROUPS, _groups(fleet, random)),
        (schema.MEMBERS, _members(fleet, random)),
        (schema.REBALANCES, _rebalances(fleet, random)),
        (schema.FINDINGS, _findings(fleet, random)),
        (schema.GROUP_MINUTES, _minutes(fleet, random)),
        (schema.ASSIGNMENTS, _assignments(fleet, random)),
        (schema.REJECTED_EVENTS, _rejected(fleet, random)),
        (schema.CHANGES, _changes(fleet, random)),
        (schema.QUEUE_PROGRESS, _progress(fleet, random)),
    ):
        rows = _table(table, columns)
        if table.cluster_by == ("cluster", "group_id"):
            rows = rows.sort_by([("cluster", "ascending"), ("group_id", "ascending")])
        write_deltalake(
            str(root / table.name),
            rows,
            target_file_size=table.file_bytes,
            writer_properties=WriterProperties(compression="ZSTD", max_row_group_size=10_000),
        )


def _table(table: schema.Table, columns: dict[str, Any]) -> pa.Table:
    rows = len(columns["cluster"])
    arrays = []
    for field in table.schema:
        if field.name not in columns:
            arrays.append(pa.nulls(rows, field.type))
        elif pa.types.is_timestamp(field.type):
            times = columns[field.name]
            array = times if isinstance(times, pa.Array) else pa.array(times)
            arrays.append(array.cast(pa.timestamp("ms", "UTC")).cast(field.type))
        else:
            arrays.append(pa.array(columns[field.name]).cast(field.type))
    return pa.table(arrays, schema=table.schema)


def _names(fleet: PagesFleet, numbers: np.ndarray) -> dict[str, Any]:
    clusters = np.array([fleet.cluster(number) for number in range(fleet.groups)])
    groups = np.array([fleet.group(number) for number in range(fleet.groups)])
    return {"cluster": clusters[numbers], "group_id": groups[numbers]}


def _groups(fleet: PagesFleet, random: np.random.Generator) -> dict[str, Any]:
    numbers = np.arange(fleet.groups)
    state = np.where(random.random(fleet.groups) < 0.03, "empty", "stable")
    return _names(fleet, numbers) | {
        "system": np.array(SYSTEMS)[numbers % 3],
        "state": state,
        "mode": np.full(fleet.groups, "clustering"),
        "strategy": np.full(fleet.groups, "kafka.range"),
        "generation": random.integers(1, 500, fleet.groups),
        "generation_source": np.full(fleet.groups, "counted"),
        "members": np.where(state == "empty", 0, fleet.members_per_group),
        "queues": np.where(numbers <= 1, LARGE_QUEUES, 50),
        "idle_members": random.integers(0, 3, fleet.groups),
        "unassigned_queues": np.zeros(fleet.groups, int),
        "spread": random.integers(0, 3, fleet.groups),
        "last_rebalance_at": fleet.until_ms - random.integers(0, WINDOW_H * HOUR_MS, fleet.groups),
    }


def _members(fleet: PagesFleet, random: np.random.Generator) -> dict[str, Any]:
    count = fleet.groups * fleet.members_per_group
    numbers = np.repeat(np.arange(fleet.groups), fleet.members_per_group)
    place = np.tile(np.arange(fleet.members_per_group), fleet.groups)
    names = np.array([f"consumer-{number}" for number in range(fleet.members_per_group)])
    hosts = np.array([f"10.0.{number // 250}.{number % 250 + 1}" for number in range(2_000)])
    left = random.random(count) < 0.2
    joined = fleet.until_ms - random.integers(2 * HOUR_MS, WINDOW_H * HOUR_MS, count)
    ended = pa.array(joined + HOUR_MS, mask=~left)
    return _names(fleet, numbers) | {
        "member_id": names[place],
        "client_id": names[place],
        "host": hosts[random.integers(0, len(hosts), count)],
        "joined_at": joined,
        "left_at": ended,
        "left_reason": pa.array(np.full(count, "left"), mask=~left),
        "lives_by": np.full(count, "heartbeats"),
    }


def _rebalances(fleet: PagesFleet, random: np.random.Generator) -> dict[str, Any]:
    numbers = random.integers(0, fleet.groups, fleet.rebalances)
    numbers[: LARGE_SPANS // 10] = 0
    times = np.sort(fleet.until_ms - random.integers(0, WINDOW_H * HOUR_MS, fleet.rebalances))
    causes = np.array(CAUSES)[random.integers(0, len(CAUSES), fleet.rebalances)]
    random.shuffle(numbers)
    triggers = pa.array(
        [
            [{"kind": kind, "member_id": "consumer-1", "topic": None, "detail": None, "event_id": f"event-{number}"}]
            for number, kind in enumerate(causes.tolist())
        ],
        schema.TRIGGERS,
    )
    moved = random.integers(0, 50, fleet.rebalances)
    return _names(fleet, numbers) | {
        "rebalance_id": np.array([f"{number:032x}" for number in range(fleet.rebalances)]),
        "system": np.array(SYSTEMS)[numbers % 3],
        "generation": np.arange(fleet.rebalances),
        "generation_source": np.full(fleet.rebalances, "counted"),
        "event_time": times,
        "detected_at": times + random.integers(500, 4_000, fleet.rebalances),
        "trigger": causes,
        "triggers": triggers,
        "strategy": np.full(fleet.rebalances, "kafka.range"),
        "mode": np.full(fleet.rebalances, "clustering"),
        "status": np.full(fleet.rebalances, "completed"),
        "members_before": np.full(fleet.rebalances, fleet.members_per_group),
        "members_after": np.full(fleet.rebalances, fleet.members_per_group),
        "queues_before": np.full(fleet.rebalances, 50),
        "queues_after": np.full(fleet.rebalances, 50),
        "queues_kept": 50 - moved,
        "queues_assigned": np.zeros(fleet.rebalances, int),
        "queues_revoked": np.zeros(fleet.rebalances, int),
        "queues_moved": moved,
        "idle_members": np.zeros(fleet.rebalances, int),
        "unassigned_queues": np.zeros(fleet.rebalances, int),
        "spread": random.integers(0, 3, fleet.rebalances),
        "pause_ms": random.integers(10, 5_000, fleet.rebalances),
        "queue_pause_ms": random.integers(10, 50_000, fleet.rebalances),
    }


def _findings(fleet: PagesFleet, random: np.random.Generator) -> dict[str, Any]:
    count = fleet.groups // 2
    opened = fleet.until_ms - random.integers(HOUR_MS, WINDOW_H * HOUR_MS, count)
    is_open = random.random(count) < 0.5
    kinds = random.integers(0, 3, count)
    return _names(fleet, random.integers(0, fleet.groups, count)) | {
        "finding_id": np.array([f"finding-{number}" for number in range(count)]),
        "kind": np.array(["flapping", "idle_members", "strategy_failed"])[kinds],
        "severity": np.array(["info", "warning", "critical"])[kinds],
        "message": np.full(count, "the group rebalances more often than it did"),
        "advice": np.full(count, "compare the members' session timeouts with their pauses"),
        "opened_at": opened,
        "closed_at": pa.array(opened + HOUR_MS, mask=is_open),
    }


def _minutes(fleet: PagesFleet, random: np.random.Generator) -> dict[str, Any]:
    count = fleet.rebalances * 3
    each = -(-count // fleet.groups)
    minutes = fleet.until_ms // 60_000 - np.arange(count) // fleet.groups * (WINDOW_H * 60 // each) - 1
    return _names(fleet, np.arange(count) % fleet.groups) | {
        "minute": minutes * 60_000,
        "members": np.full(count, fleet.members_per_group),
        "rebalances": random.integers(0, 3, count),
        "queues_moved": random.integers(0, 50, count),
        "queue_pause_ms": random.integers(0, 50_000, count),
        "idle_members": random.integers(0, 3, count),
        "unassigned_queues": np.zeros(count, int),
        "spread": random.integers(0, 3, count),
    }


def _assignments(fleet: PagesFleet, random: np.random.Generator) -> dict[str, Any]:
    # Each queue has spans one after the other, the last of them open.
    per_queue, queues = 2, 50
    sizes = (LARGE_SPANS, fleet.crowded_spans, fleet.assignments - LARGE_SPANS - fleet.crowded_spans)
    position = np.concatenate([np.arange(size) for size in sizes])
    others = np.arange(sizes[2]) // (per_queue * queues) % fleet.groups
    numbers = np.concatenate([np.zeros(sizes[0], int), np.ones(sizes[1], int), others])
    each = np.repeat([sizes[0] // LARGE_QUEUES, max(1, sizes[1] // LARGE_QUEUES), per_queue], sizes)
    queue = np.where(numbers <= 1, position // each % LARGE_QUEUES, position // each % queues)
    place = position % each
    step = WINDOW_H * HOUR_MS // each
    begin = fleet.until_ms - WINDOW_H * HOUR_MS + place * step
    names = np.array([f"consumer-{number}" for number in range(fleet.members_per_group)])
    return _names(fleet, numbers) | {
        "topic": np.full(fleet.assignments, "orders"),
        "queue_id": queue,
        "member_id": names[random.integers(0, fleet.members_per_group, fleet.assignments)],
        "origin": np.full(fleet.assignments, "computed"),
        "generation": place + 1,
        "rebalance_id": np.array([f"{number % fleet.rebalances:032x}" for number in range(fleet.assignments)]),
        "valid_from": begin,
        "valid_to": pa.array(begin + step, mask=place == each - 1),
        "inferred": np.zeros(fleet.assignments, bool),
    }


def _rejected(fleet: PagesFleet, random: np.random.Generator) -> dict[str, Any]:
    count = fleet.groups
    return _names(fleet, random.integers(0, fleet.groups, count)) | {
        "source": np.full(count, "events"),
        "position": np.array([f"0:{number}" for number in range(count)]),
        "raw": np.full(count, '{"type":"heartbeat"}'),
        "reason": np.full(count, "missing_field"),
        "detail": np.full(count, "event_time is missing"),
        "seen_at": fleet.until_ms - random.integers(0, WINDOW_H * HOUR_MS, count),
        "raw_length": np.full(count, 20),
    }


def _changes(fleet: PagesFleet, random: np.random.Generator) -> dict[str, Any]:
    count = fleet.rebalances
    return _names(fleet, random.integers(0, fleet.groups, count)) | {
        "number": np.arange(count),
        "kind": np.full(count, "queues_reassigned"),
        "event_time": np.sort(fleet.until_ms - random.integers(0, WINDOW_H * HOUR_MS, count)),
        "batch": np.arange(count) // 10,
        "body": np.full(count, "{}"),
    }


def _progress(fleet: PagesFleet, random: np.random.Generator) -> dict[str, Any]:
    # Half of the groups' queues have moved within the last hour.
    queues = 25
    count = fleet.groups * queues
    lag = random.integers(0, 1_000, count)
    return _names(fleet, np.repeat(np.arange(fleet.groups), queues)) | {
        "topic": np.full(count, "orders"),
        "queue_id": np.tile(np.arange(queues), fleet.groups),
        "event_time": np.full(count, fleet.until_ms - 60_000),
        "committed_offset": 1_000_000 - lag,
        "committed_at": np.full(count, fleet.until_ms - 30_000),
        "end_offset": np.full(count, 1_000_000),
        "end_at": np.full(count, fleet.until_ms - 20_000),
        "lag": lag,
    }
