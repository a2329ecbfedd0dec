"""Bench: what the live view costs in a batch, and what the driver holds for it, by the number of groups in the tables.

Each number of groups is measured in processes of its own, in turns; printed are the medians, for two processes of one
number differ by a fifth. A batch is ten rebalances in ten groups, and the commit to `groups` that follows from them.
Times are computing time of the process, so that other work disturbs them little.
"""

from __future__ import annotations

import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from streaming.pipeline.progress_listener import ProgressListener
from streaming.pipeline.sink import Decided
from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.schema import FINDINGS, GROUPS
from streaming.tables.writer import Mark
from streaming.terminal.live_view import LiveStatus
from streaming.views.job_summary import summarise

GROUPS_COUNTS = (1_000, 100_000, 1_000_000)
_BATCH = 10
_ROUNDS = 200
_PROCESSES = 7
_T0 = 1_767_225_600_000


class Figures(msgspec.Struct):
    """One number of groups: computing in seconds, memory in bytes."""

    begin_s: float
    batch_s: float
    held_bytes: float
    summary_s: float
    summary_bytes: float


def main() -> None:
    """Print the figures."""
    runs: dict[int, list[Figures]] = {groups: [] for groups in GROUPS_COUNTS}
    for _ in range(_PROCESSES):
        for groups, measured in runs.items():
            command = [sys.executable, "-m", "bench.view_bench", str(groups)]
            done = subprocess.run(command, check=True, capture_output=True)
            measured.append(msgspec.json.decode(done.stdout, type=Figures))
    found = {groups: _median(measured) for groups, measured in runs.items()}
    for groups, each in found.items():
        print(
            f"{groups:>9,} groups: a batch {each.batch_s * 1e6:.0f} us, the start {each.begin_s:.2f} s,"
            f" more memory {each.held_bytes / 1e6:.0f} MB; the summary after a demo {each.summary_s:.2f} s,"
            f" {each.summary_bytes / 1e6:.0f} MB"
        )
    few, many = found[GROUPS_COUNTS[0]], found[GROUPS_COUNTS[-1]]
    ratio = many.batch_s / few.batch_s
    print(f"a batch with {GROUPS_COUNTS[-1]:,} groups / with {GROUPS_COUNTS[0]:,}: {ratio:.2f} (goal 1)")


def _median(measured: Sequence[Figures]) -> Figures:
    names = Figures.__struct_fields__
    return Figures(**{name: statistics.median(getattr(figures, name) for figures in measured) for name in names})


def _measure(groups: int) -> Figures:
    root = Path(tempfile.mkdtemp(prefix="view-bench-"))
    try:
        _write(root, groups)
        watch = ProgressListener(LiveStatus())
        before, begin = _peak_bytes(), time.process_time()
        watch.begin(root)
        begin_s, held = time.process_time() - begin, _peak_bytes() - before
        times = []
        for number in range(_ROUNDS):
            decided, ended, come = _batch(number, groups)
            begin = time.process_time()
            watch.decided(decided)
            watch.replaced(GROUPS, ended, come)
            times.append(time.process_time() - begin)
        before, begin = _peak_bytes(), time.process_time()
        summarise(root)
        return Figures(begin_s, statistics.median(times), held, time.process_time() - begin, _peak_bytes() - before)
    finally:
        shutil.rmtree(root)


def _write(root: Path, groups: int) -> None:
    """Fill the table of groups in parts, so that writing leaves no peak above what reading needs."""
    table = DeltaRsTable(root, GROUPS)
    DeltaRsTable(root, FINDINGS)
    for part, first in enumerate(range(0, groups, 20_000)):
        numbers = pa.array(range(first, min(first + 20_000, groups)), pa.int64())
        made = {
            "cluster": pc.binary_join_element_wise("c", pc.bit_wise_and(numbers, 3).cast(pa.string()), ""),
            "system": pa.repeat(pa.scalar("kafka"), len(numbers)),
            "group_id": pc.binary_join_element_wise("group", pc.utf8_lpad(numbers.cast(pa.string()), 7, "0"), "-"),
            "members": pa.repeat(pa.scalar(10, GROUPS.schema.field("members").type), len(numbers)),
        }
        columns = [
            made[field.name].cast(field.type) if field.name in made else pa.nulls(len(numbers), field.type)
            for field in GROUPS.schema
        ]
        table.append(pa.table(columns, schema=GROUPS.schema), Mark("bench", part))


def _batch(number: int, groups: int) -> tuple[Decided, pa.Table, pa.Table]:
    """Return ten rebalances, and the rows of their groups before and after."""
    ids = [f"group-{(number * _BATCH + place) * 7919 % groups:07d}" for place in range(_BATCH)]
    rebalances = [
        {
            "event_time": _T0 + number,
            "cluster": "c0",
            "group_id": group,
            "trigger": "member_joined",
            "triggers": [{"kind": "member_joined", "member_id": f"{group}-a"}],
            "members_after": 11,
            "queues_moved": 1,
            "status": "completed",
        }
        for group in ids
    ]
    ended, come = (
        to_arrow(GROUPS, [{"cluster": "c0", "system": "kafka", "group_id": group, "members": count} for group in ids])
        for count in (10, 11)
    )
    return Decided(_BATCH, rebalances, {"c0": _T0 + number}, 0), ended, come


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(_measure(int(sys.argv[1]))))
