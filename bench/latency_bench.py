"""Bench: from a membership change to its row in `rebalances`, in batches and in seconds, at the default settings."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from bisect import bisect_left
from pathlib import Path

from deltalake import DeltaTable

from streaming import logs
from streaming.atomic_file import write_atomically
from streaming.job import Job
from streaming.settings import load

SECONDS = float(os.environ.get("BENCH_LATENCY_SECONDS", "60"))
EVERY_S = 0.25


def main() -> None:
    """Print the figures."""
    logs.configure("warning")
    work = Path(tempfile.mkdtemp(prefix="rebalance-bench-"))
    events = work / "events"
    events.mkdir()
    settings = load(
        overrides={
            "events.folder": str(events),
            "job.tables": work / "tables",
            "job.checkpoint": work / "checkpoint",
        }
    )
    job = Job(settings)
    warm = threading.Event()
    job.when_running(warm.set)
    runner = threading.Thread(target=job.run, name="job")
    try:
        _join(events, 0)
        runner.start()
        warm.wait()
        written = {}
        ends = time.monotonic() + SECONDS
        while time.monotonic() < ends:
            group, event_ms = _join(events, len(written) + 1)
            written[group] = (event_ms, time.time_ns() // 1_000_000)
            time.sleep(EVERY_S)
        # The clock must pass the last change before the job may stop.
        time.sleep(settings.time.allowed_lateness_ms / 1000)
        _join(events, len(written) + 1)
        time.sleep(3 * settings.job.trigger_interval_ms / 1000)
        job.stop.ask()
        runner.join()
        _report(work, written)
    finally:
        job.stop.ask()
        runner.join()
        shutil.rmtree(work)


def _join(folder: Path, number: int) -> tuple[str, int]:
    """Let a member join a group of its own now."""
    group, now_ms = f"group-{number:05d}", time.time_ns() // 1_000_000
    event = {
        "schema_version": 1,
        "type": "member_joined",
        "event_time": now_ms,
        "system": "kafka",
        "cluster": "bench",
        "group": group,
        "member_id": f"{group}-a",
        "subscriptions": ["t"],
    }
    write_atomically(folder / f"{number:08d}.jsonl", json.dumps(event).encode() + b"\n")
    return group, now_ms


def _report(work: Path, written: dict[str, tuple[int, int]]) -> None:
    starts = _batch_starts(work / "checkpoint" / "query" / "offsets")
    commits = _commits(work / "tables" / "rebalances" / "_delta_log")
    batch_of = {start: batch for batch, start in starts.items()}
    seconds, batches = [], []
    rows = DeltaTable(str(work / "tables" / "rebalances")).to_pyarrow_table(
        columns=["group_id", "trigger", "detected_at"]
    )
    for row in rows.to_pylist():
        if row["group_id"] in written and row["trigger"] == "group_created":
            event_ms, file_ms = written[row["group_id"]]
            decided = batch_of[round(row["detected_at"].timestamp() * 1000)]
            read = sorted(starts)[bisect_left([starts[batch] for batch in sorted(starts)], file_ms)]
            seconds.append((commits[decided] - event_ms) / 1000)
            batches.append(decided - min(read, decided) + 1)
    _say(f"{len(seconds)} of {len(written)} membership changes have their row")
    for unit, values in (("seconds", seconds), ("batches", batches)):
        p99 = statistics.quantiles(values, n=100)[98]
        _say(f"from a change to its row in rebalances, {unit}: median {statistics.median(values):.2f}, p99 {p99:.2f}")


def _batch_starts(offsets: Path) -> dict[int, int]:
    """Answer each batch's own timestamp, out of the checkpoint."""
    found = {}
    for file in offsets.iterdir():
        if file.name.isdigit():
            found[int(file.name)] = int(json.loads(file.read_text().splitlines()[1])["batchTimestampMs"])
    return found


def _commits(log: Path) -> dict[int, int]:
    """Answer when each batch's rows were committed."""
    found = {}
    for file in log.glob("*.json"):
        actions = [json.loads(line) for line in file.read_text().splitlines()]
        marks = [action["txn"]["version"] for action in actions if "txn" in action]
        times = [action["commitInfo"]["timestamp"] for action in actions if "commitInfo" in action]
        found.update(dict.fromkeys(marks, times[0]))
    return found


def _say(line: str) -> None:
    sys.stdout.write(f"latency: {line}\n")
    sys.stdout.flush()
