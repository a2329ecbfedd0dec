"""The tables that the core makes of batches of events, in the plain form in which the model makes them too."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from tests.core_config import core_config
from tests.model.conditions import RECORDING, Conditions
from tests.model.rows import FINDINGS, GROUP, MEMBER, REBALANCE, SPAN, Tables, plain
from tests.model.times import BATCH_MS, Event
from tests.simulation.core_run import CoreRun, rows_of


def core_tables(batches: Sequence[Sequence[Event]], how: Conditions = RECORDING) -> Tables:
    """Return what the core writes when it is fed these batches and its clock is flushed at the end."""
    return tables_of(run_core(batches, how))


def run_core(batches: Sequence[Sequence[Event]], how: Conditions = RECORDING) -> CoreRun:
    """Run the core over these batches, and flush its clock at the end."""
    run = CoreRun(core_config(shards=how.shards, settle_ms=how.settle_ms))
    newest = 0
    for number, batch in enumerate(batches):
        if number and how.moves:
            run.move(how.moves[number % len(how.moves)], BATCH_MS)
        newest = max([newest, *(event["event_time"] for event in batch if not event.get("is_ahead"))])
        batch_ms = BATCH_MS if how.lag_ms is None else newest + how.lag_ms
        run.batch(batch_ms, [json.dumps(event).encode() for event in batch])
    run.flush(BATCH_MS + 1)
    return run


def tables_of(run: CoreRun) -> Tables:
    """Return the tables of a run: its journal applied whole, in the order of its histories."""
    tables = Tables()
    for name, kept in rows_of(run.changes).items():
        if name == "assignments":
            tables.spans = sorted((plain(row, SPAN) for row in kept), key=repr)
        elif name == "members":
            tables.members = sorted((plain(row, MEMBER) for row in kept), key=repr)
        elif name == "findings":
            findings = [row for row in kept if row["kind"] in FINDINGS]
            fields = ("cluster", "group_id", "kind", "opened_at", "closed_at")
            tables.findings = sorted((plain(row, fields) for row in findings), key=repr)
        elif name == "groups":
            tables.groups = sorted((plain(row, GROUP) for row in kept), key=repr)
        elif name == "topics":
            tables.topics = sorted((_topic(row) for row in kept), key=repr)
    for rebalance in run.rebalances:
        row = msgspec.to_builtins(rebalance)
        row["triggers"] = sorted(
            ((cause["kind"], cause["member_id"], cause["topic"]) for cause in row["triggers"]), key=repr
        )
        tables.rebalances.append(plain(row, REBALANCE))
    tables.rebalances.sort(key=lambda row: (row["cluster"], row["group_id"]))  # a group's own order stays
    tables.late = Counter(
        f"{rejected.cluster}/{rejected.group_id}" for rejected in run.rejected if rejected.reason == "late"
    )
    tables.rejected = Counter(rejected.reason for rejected in run.rejected if rejected.reason != "late")
    return tables


def _topic(row: dict[str, Any]) -> dict[str, Any]:
    queues = [
        (queue["broker"] or "", queue["queue_id"], tuple(queue["racks"] or ()) or None) for queue in row["queues"]
    ]
    return {**plain(row, ("cluster", "topic", "valid_from", "valid_to")), "queues": queues}
