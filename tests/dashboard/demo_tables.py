"""Tables of the demo's fleet: simulated, decided by the core, and written as the job writes them, without Spark."""

from __future__ import annotations

from pathlib import Path

import msgspec

from streaming.pipeline.decided_rows import progress_rows
from streaming.simulator.fleet import RECORDINGS_START_MS, Fleet
from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.schema import QUEUE_PROGRESS, REJECTED_EVENTS
from streaming.tables.writer import Mark
from tests.core_config import core_config
from tests.simulation.core_run import run_core
from tests.streaming.views.story import store

START_MS = RECORDINGS_START_MS
SPAN_MS = 180_000


def write_demo(root: Path) -> None:
    """Play three minutes of the fleet that `demo` shows."""
    fleet = Fleet(1, start_ms=START_MS, groups=24, members=180, speed=2.0, short_sessions=True)
    run = run_core([*fleet.deliveries_until(START_MS + SPAN_MS), *fleet.finish()], core_config(), 5_000)
    store(root, run.rows(), run.changes)
    moved = [row for progress in run.progress for row in progress_rows(msgspec.json.encode(progress).decode())]
    DeltaRsTable(root, QUEUE_PROGRESS).append(to_arrow(QUEUE_PROGRESS, moved), Mark("job", 1))
    rejected = [msgspec.to_builtins(rejected_event) for rejected_event in run.rejected]
    DeltaRsTable(root, REJECTED_EVENTS).append(to_arrow(REJECTED_EVENTS, rejected), Mark("job", 1))
