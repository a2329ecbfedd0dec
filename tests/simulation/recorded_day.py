"""A recorded day: its events, how they are played through the core, and the rows of each table that come of them.

`python -m tests.simulation.recorded_day FOLDER` writes those rows to a folder, a file for each table: two versions of
the code are compared by `diff -r`. `--write` writes their digests anew after a change of rows that was meant; the diff
of `rows.json` is reviewed as data. `--record` plays the fleets anew.

The day has twelve shifts of fleets of all three systems, every two hours. Between two shifts all sources are silent;
the same groups go on in the next one, with other members, strategies and topics.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from streaming.simulator import Fleet
from streaming.simulator.fleet import RECORDINGS_START_MS
from streaming.simulator.serializer import line
from tests.core_config import core_config
from tests.simulation.core_run import CoreRun, rows_of
from udfs.model.journal import Change, Rebalance, Rejected

FOLDER = Path(__file__).with_name("day")
EVENTS = FOLDER / "events.jsonl.xz"
ROWS = FOLDER / "rows.json"

SHIFTS = 12
SHIFT_EVERY_MS = 7_200_000
SHIFT_MS = 45_000
BATCH_MS = 10_000
RULES = core_config(shards=2)

# The time of each batch, and its lines.
Batches: TypeAlias = list[tuple[int, list[bytes]]]
# The rows of each table.
Tables: TypeAlias = Mapping[str, Sequence[dict[str, Any]]]
# Columns that may depend on how the events were cut into batches.
_OF_THE_BATCH = frozenset({"detected_at", "seen_at", "source", "position", "batch"})


def record() -> Iterator[bytes]:
    """Play the day: lines of the time of delivery and the event, in the order of delivery."""
    for shift in range(SHIFTS):
        start = RECORDINGS_START_MS + shift * SHIFT_EVERY_MS
        fleet = Fleet(shift, start_ms=start, groups=24, members=54, speed=4.0, short_sessions=shift % 2 == 1)
        names = {
            (cluster.name, group.group_id): f"group-{number}"  # type: ignore[attr-defined]
            for cluster in fleet.clusters
            for number, group in enumerate(cluster.groups)
        }
        for delivery in [*fleet.deliveries_until(start + SHIFT_MS), *fleet.finish()]:
            event = delivery.event
            if hasattr(event, "group"):
                name = names.get((event.cluster, event.group), event.group)
                delivery = msgspec.structs.replace(delivery, event=msgspec.structs.replace(event, group=name))
            yield str(delivery.deliver_at).encode() + b" " + line(delivery)


def batches() -> Batches:
    """Return the recorded day in batches of ten seconds."""
    delivered = [text.split(b" ", 1) for text in lzma.decompress(EVENTS.read_bytes()).splitlines()]
    by_time = groupby(delivered, lambda delivery: int(delivery[0]) // BATCH_MS)
    return [((number + 1) * BATCH_MS + 1_000, [text for _, text in lines]) for number, lines in by_time]


def play(run: CoreRun, day: Batches) -> CoreRun:
    """Play batches through the core, and move its clocks past the last event."""
    for batch_ms, lines in day:
        run.batch(batch_ms, lines)
    run.flush(day[-1][0] + 1_000)
    return run


def tables(rebalances: Sequence[Rebalance], changes: Sequence[Change], rejected: Sequence[Rejected]) -> Tables:
    """Return the rows of each table, sorted; without columns that depend on how the events were cut into batches."""
    found: dict[str, list[dict[str, Any]]] = {
        "rebalances": [msgspec.to_builtins(rebalance) for rebalance in rebalances]
    }
    found |= rows_of(changes)
    found["rejected_events"] = [msgspec.to_builtins(rejection) for rejection in rejected]
    return {name: _in_order(rows) for name, rows in found.items()}


def _in_order(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    plain = [{key: value for key, value in row.items() if key not in _OF_THE_BATCH} for row in rows]
    return [json.loads(text) for text in sorted(json.dumps(row, default=str, sort_keys=True) for row in plain)]


def tables_of(run: CoreRun) -> Tables:
    """Return the rows of each table after a run from the day's beginning."""
    return tables(run.rebalances, run.changes, run.rejected)


def digests(found: Tables) -> dict[str, dict[str, str]]:
    """Return for each table and group how many rows it has, and their digest."""
    texts: dict[str, dict[str, list[bytes]]] = {}
    for name, rows in found.items():
        for row in rows:
            place = f"{row['cluster']} {row['topic'] if name == 'topics' else row['group_id']}"
            texts.setdefault(name, {}).setdefault(place, []).append(json.dumps(row, sort_keys=True).encode())
    return {
        name: {
            place: f"{len(lines)} {hashlib.sha256(b''.join(lines)).hexdigest()[:16]}"
            for place, lines in sorted(places.items())
        }
        for name, places in sorted(texts.items())
    }


def packed(lines: Iterator[bytes]) -> bytes:
    """Compress lines; the same lines give the same bytes."""
    return lzma.compress(b"".join(lines), preset=9 | lzma.PRESET_EXTREME)


def _write_tables(found: Tables, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in found.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row, sort_keys=True) + "\n" for row in rows))


def main(arguments: Sequence[str]) -> None:
    """Write the day, or its digests, as the arguments request."""
    if "--record" in arguments:
        EVENTS.write_bytes(packed(record()))
    found = tables_of(play(CoreRun(RULES), batches()))
    if "--write" in arguments:
        ROWS.write_text(json.dumps(digests(found), indent=0) + "\n")
    for folder in (argument for argument in arguments if not argument.startswith("-")):
        _write_tables(found, Path(folder))


if __name__ == "__main__":
    main(sys.argv[1:])
