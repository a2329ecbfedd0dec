"""Events of a simulated fleet as lines, and ways of cutting them into files."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from streaming.simulator.fleet import Fleet
from streaming.simulator.serializer import line

# The job's default setting.
ALLOWED_LATENESS_MS = 2_000
_AN_HOUR_AGO_S = 3_600


class Line(NamedTuple):
    """One event as it is written, and when it happened."""

    event_time: int
    text: bytes


def fleet_lines(seed: int, duration_ms: int, *, groups: int = 9, speed: float = 2.0) -> list[Line]:
    """Return all events of a fleet, in the order in which they happened; none is late or repeated."""
    fleet = Fleet(seed, groups=groups, members=4 * groups, speed=speed, disorder=0.0)
    deliveries = [*fleet.deliveries_until(fleet.start_ms + duration_ms), *fleet.finish()]
    return sorted(Line(delivery.event.event_time, line(delivery)) for delivery in deliveries)


def annotation_lines(lines: Sequence[Line]) -> list[Line]:
    """Return annotations at times of these lines: two versions of one, and one of another cluster, far ahead."""
    times = [lines[len(lines) * part // 4].event_time for part in (1, 2, 3)]
    deploy = {"kind": "deploy", "text": "orders 2.4.1", "id": "r42", "groups": ["*"]}
    contents = (
        deploy,
        {"kind": "drain", "text": "node 7", "cluster": "unheard of", "hosts": ["10.*"], "from": times[2] + 10**9},
        {**deploy, "to": times[2], "url": "https://ci.example/42"},
    )
    common = {"schema_version": 1, "type": "annotation"}
    return [
        Line(time, json.dumps({**common, "event_time": time, **content}).encode() + b"\n")
        for time, content in zip(times, contents, strict=True)
    ]


def disordered(lines: Sequence[Line], seed: int, lateness_ms: int = ALLOWED_LATENESS_MS) -> list[Line]:
    """Bring lines out of order, but none behind another that is more than the lateness newer."""
    chance = random.Random(seed)
    return sorted(lines, key=lambda delivered: delivered.event_time + chance.uniform(0, lateness_ms))


def cut(lines: Sequence[Line], parts: int) -> list[bytes]:
    """Cut lines into this many texts, one after the other, of different lengths."""
    weights = [1 + part % 3 for part in range(parts)]
    ends = [len(lines) * sum(weights[: part + 1]) // sum(weights) for part in range(parts)]
    return [
        b"".join(delivery.text for delivery in lines[start:end]) for start, end in zip([0, *ends], ends, strict=False)
    ]


def write_files(folder: Path, texts: Sequence[bytes], *, first: int = 0) -> list[Path]:
    """Write a file for each text, the oldest first: folders are read in the order of age.

    Args:
        first: The number of the first file, where the folder has files already.
    """
    folder.mkdir(parents=True, exist_ok=True)
    now_s = os.stat(folder).st_mtime
    paths = []
    for number, text in enumerate(texts, first):
        hidden = folder / f".{number:06d}.unfinished"
        hidden.write_bytes(text)
        age = now_s - _AN_HOUR_AGO_S + number
        os.utime(hidden, (age, age))
        paths.append(folder / f"{number:06d}.jsonl")
        hidden.replace(paths[-1])
    return paths
