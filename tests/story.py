"""Plays a recorded history through the core and prints each decision with its causes: `make story FILE=events.jsonl`.

FILE has events of the contract, one JSON object a line, in any order. They are played in the order of their times,
each in a batch of its own; what the core decides is printed below the event that let the cluster's clock pass it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from tests.core_config import core_config
from tests.simulation.core_run import CoreRun
from udfs.ingest.parser import parse
from udfs.model.journal import Change, Rebalance, Rejected
from udfs.model.rejection import Rejection
from udfs.model.timestamps import LATEST_MS

# In a recording, every event is further behind its batch than clocks differ.
_BEHIND_MS = 3_600_000
_ELSEWHERE = frozenset({"event_time", "system", "cluster", "type", "schema_version", "event_id"})


def story(lines: list[bytes]) -> Iterator[str]:
    """Yield the course of a history, a line of text each.

    Args:
        lines: Events of the contract; what cannot be read is played last, as rejected.
    """
    timed = sorted((_time_of(line), number, line) for number, line in enumerate(lines) if line.strip())
    run = CoreRun(core_config(allowed_lateness_ms=0))
    end = max((time for time, _, _ in timed if time < LATEST_MS), default=0) + _BEHIND_MS
    for _, _, line in timed:
        yield f"event      {_shown(line)}"
        yield from _decided(run, [line], end)
    before = len(run.rebalances), len(run.changes), len(run.rejected)
    yield "the end    the clock passes the newest event"
    run.flush(end)
    yield from _news(run, *before)


def _decided(run: CoreRun, batch: list[bytes], batch_ms: int) -> Iterator[str]:
    before = len(run.rebalances), len(run.changes), len(run.rejected)
    run.batch(batch_ms, batch)
    yield from _news(run, *before)


def _news(run: CoreRun, rebalances: int, changes: int, rejected: int) -> Iterator[str]:
    for row in run.rebalances[rebalances:]:
        yield from _rebalance(row)
    for change in run.changes[changes:]:
        yield _change(change)
    for rejected_event in run.rejected[rejected:]:
        yield _rejected(rejected_event)


def _rebalance(row: Rebalance) -> Iterator[str]:
    yield (
        f"REBALANCE  {_time(row.event_time)} {row.cluster}/{row.group_id} generation {row.generation} "
        f"({row.generation_source}), {row.strategy}, {row.status}: "
        f"members {row.members_before} to {row.members_after}, "
        f"queues kept {row.queues_kept}, moved {row.queues_moved}, assigned {row.queues_assigned}, "
        f"revoked {row.queues_revoked}"
    )
    for trigger in row.triggers:
        about = " ".join(part for part in (trigger.member_id, trigger.topic, trigger.detail, trigger.event_id) if part)
        yield f"  because  {trigger.kind} {about}"


def _change(change: Change) -> str:
    body = {key: value for key, value in msgspec.to_builtins(change.body).items() if value is not None}
    kind = body.pop("type", body.pop("kind", type(change.body).__name__))
    return f"  change   {change.cluster}/{change.group_id or ''} {kind} {json.dumps(body, sort_keys=True)}"


def _rejected(rejected: Rejected) -> str:
    return f"  rejected {rejected.reason}: {rejected.detail}"


def _time(epoch_ms: int) -> str:
    return datetime.fromtimestamp(epoch_ms / 1_000, UTC).isoformat(timespec="milliseconds")


def _time_of(line: bytes) -> int:
    event = parse(line, LATEST_MS, core_config())
    return LATEST_MS if isinstance(event, Rejection) else event.event_time


def _shown(line: bytes) -> str:
    try:
        fields = json.loads(line)
    except ValueError:
        return line.decode(errors="replace")
    if not isinstance(fields, dict):
        return str(fields)
    rest = {key: value for key, value in fields.items() if key not in _ELSEWHERE}
    return f"{fields.get('event_time')} {fields.get('cluster')} {fields.get('type')} {json.dumps(rest)}"


if __name__ == "__main__":
    for text in story(Path(sys.argv[1]).read_bytes().splitlines()):
        sys.stdout.write(text + "\n")
