"""A recording in many small files, each with something for every table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from tests.job.recordings import Line, fleet_lines, write_files

_SPAN_MS = 4_000


def write_busy_files(folder: Path, files: int) -> None:
    """Write a small fleet's life, four seconds a file.

    Beside the fleet, a group has one queue and one member more in every other file, so that a queue moves and a
    finding opens or closes, and commits; a topic grows; an annotation has a new version; a line is no event.
    """
    lines = fleet_lines(seed=8, duration_ms=files * _SPAN_MS, groups=3, speed=1.0)
    start = lines[0].event_time
    texts: list[list[bytes]] = [[] for _ in range(files)]
    for line in lines:
        # The fleet's last words come at its end.
        texts[min((line.event_time - start) // _SPAN_MS, files - 1)].append(line.text)
    write_files(folder, [b"".join([*_beside(number, start), *text]) for number, text in enumerate(texts)])


def _beside(number: int, start: int) -> Iterator[bytes]:
    event = {
        "schema_version": 1,
        "event_time": start + number * _SPAN_MS,
        "system": "kafka",
        "cluster": "kafka-main",
    }
    group = {"group": "comes and goes", "subscriptions": ["single"], "session_timeout_ms": 3_600_000}
    if number == 0:
        yield _line(event | {"type": "topic_queues", "topic": "single", "queue_count": 1})
        yield _line(event | group | {"type": "member_joined", "member_id": "stays"})
    elif number % 2:
        yield _line(event | group | {"type": "member_joined", "member_id": "goes"})
    else:
        yield _line(event | {"type": "member_left", "group": "comes and goes", "member_id": "goes"})
    committed = {"topic": "single", "queue_id": 0, "offset": 10 * number, "end_offset": 11 * number}
    yield _line(event | {"type": "progress", "group": "comes and goes", "queues": [committed]})
    yield _line(event | {"type": "topic_queues", "topic": "grows", "queue_count": number + 1})
    deploy = {"type": "annotation", "kind": "deploy", "text": f"version {number}", "id": f"deploy-{number // 2}"}
    yield _line(event | deploy)
    yield f"line {number} is no event\n".encode()


def _line(event: dict[str, object]) -> bytes:
    return Line(0, json.dumps(event).encode() + b"\n").text
