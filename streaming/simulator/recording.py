"""Shell: a finished recording of a simulated fleet: files of events, and a file of expected results."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

from streaming.machine.atomic_file import write_atomically
from streaming.simulator.fleet import Fleet
from streaming.simulator.serializer import line
from streaming.simulator.truth import rfc3339, truth_lines

# Each cluster has two collectors that share its events as they arrive, so lines are out of order across files.
COLLECTORS = ("a", "b")
FILE_SPAN_MS = 30_000


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a recording, and their counts."""

    events_folder: str
    truth_file: str
    files: int
    events: int
    rebalances: int
    from_time: str
    to_time: str


def record(fleet: Fleet, out: Path, duration_ms: int) -> Recording:
    """Simulate a fleet for this long and record it: ``out/events/*.jsonl`` and ``out/truth.jsonl``.

    Files are closed by rename. Their modification times ascend in the order of delivery, which is the order in which
    folders are read; their bytes depend only on the fleet.

    Raises:
        FileExistsError: The folder contains events already, and two recordings cannot be mixed.
    """
    folder = out / "events"
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty")
    end = fleet.start_ms + duration_ms
    names: list[Path] = []
    events = 0
    for span_end in range(fleet.start_ms + FILE_SPAN_MS, end + FILE_SPAN_MS, FILE_SPAN_MS):
        last = span_end >= end
        deliveries = [*fleet.deliveries_until(min(span_end, end)), *(fleet.finish() if last else ())]
        texts: dict[str, list[bytes]] = {}
        for number, delivery in enumerate(deliveries):
            collector = COLLECTORS[(number // 3) % len(COLLECTORS)]
            texts.setdefault(f"{delivery.event.cluster}-{collector}", []).append(line(delivery))
        events += len(deliveries)
        for source, lines in sorted(texts.items()):
            names.append(folder / f"{(span_end - fleet.start_ms) // FILE_SPAN_MS:06d}-{source}.jsonl")
            write_atomically(names[-1], b"".join(lines))
    _order_by_time(names)
    truth = fleet.truth
    write_atomically(out / "truth.jsonl", truth_lines(truth))
    return Recording(
        events_folder=str(folder),
        truth_file=str(out / "truth.jsonl"),
        files=len(names),
        events=events,
        rebalances=sum(rebalance.required for rebalance in truth),
        from_time=rfc3339(fleet.start_ms),
        to_time=rfc3339(end),
    )


def _order_by_time(names: list[Path]) -> None:
    newest = time.time_ns()
    for age, name in enumerate(reversed(names)):
        time_ns = newest - age * 1_000_000_000
        os.utime(name, ns=(time_ns, time_ns))
