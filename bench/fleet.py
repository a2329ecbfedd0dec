"""Bench: a fleet of a million members as files of JSON lines, written fast and always the same."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from streaming.machine.atomic_file import write_atomically

# Long enough to measure the fleet after the ids of its joins are forgotten.
SESSION_TIMEOUT_MS = 1_800_000
SPREAD_MS = 9_000  # the heartbeats of one batch come from so long a time, as a fleet sends them


@dataclass(frozen=True)
class FleetShape:
    """How large the fleet is, and when it lives (epoch ms)."""

    groups: int = 100_000
    members_per_group: int = 10
    topics: int = 1_000
    queues_per_topic: int = 20
    start_ms: int = 1_750_000_000_000
    cluster: str = "bench"

    @property
    def members(self) -> int:
        return self.groups * self.members_per_group

    def member(self, number: int) -> tuple[str, str]:
        """Return group and member id of the n-th member of the fleet."""
        group, place = divmod(number, self.members_per_group)
        return f"group-{group:06d}", f"consumer-group-{group:06d}-{place}"


def _common(kind: str, cluster: str, time_ms: int) -> str:
    return f'{{"schema_version":1,"type":"{kind}","event_time":{time_ms},"system":"kafka","cluster":"{cluster}"'


def write_seed(shape: FleetShape, folder: Path, files: int = 20) -> None:
    """Write the topics, then a described join of every member, all at ``start_ms``."""
    topics = [
        f'{_common("topic_queues", shape.cluster, shape.start_ms)},"topic":"topic-{topic:04d}",'
        f'"queue_count":{shape.queues_per_topic}}}'
        for topic in range(shape.topics)
    ]
    write_atomically(folder / "seed-000-topics.jsonl", ("\n".join(topics) + "\n").encode())
    head = _common("member_joined", shape.cluster, shape.start_ms + 1)
    step = -(-shape.members // files)
    for file in range(files):
        lines = []
        for number in range(file * step, min((file + 1) * step, shape.members)):
            group, member = shape.member(number)
            topic = number // shape.members_per_group % shape.topics
            lines.append(
                f'{head},"group":"{group}","member_id":"{member}","client_id":"{member}",'
                f'"host":"/10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}",'
                f'"subscriptions":["topic-{topic:04d}"],"strategies":["range"],'
                f'"session_timeout_ms":{SESSION_TIMEOUT_MS}}}'
            )
        write_atomically(folder / f"seed-{file + 1:03d}-members.jsonl", ("\n".join(lines) + "\n").encode())


def heartbeats(shape: FleetShape, numbers: range, time_ms: int) -> list[str]:
    """Return a heartbeat of each of these members, in random order, at random times of the span before ``time_ms``.

    Args:
        numbers: Which heartbeats, counted over the whole run: all members send one, in one random order, then again in
            another.
    """
    chances = np.random.default_rng(numbers.start)
    times = (time_ms - 1 - chances.integers(0, SPREAD_MS, len(numbers))).tolist()
    lines = []
    for number, at in zip(numbers, times, strict=True):
        lap, place = divmod(number, shape.members)
        group, member = shape.member(_order_of(shape.members, lap)[place])
        lines.append(f'{_common("heartbeat", shape.cluster, at)},"group":"{group}","member_id":"{member}"}}')
    return lines


@lru_cache(maxsize=2)
def _order_of(members: int, lap: int) -> list[int]:
    order: list[int] = np.random.default_rng(lap).permutation(members).tolist()
    return order


def write_heartbeats(
    shape: FleetShape, folders: Iterable[Path], name: str, numbers: range, time_ms: int, files: int = 2
) -> None:
    """Write the heartbeats of these members as some files of a batch, so that each core has one to read."""
    lines = heartbeats(shape, numbers, time_ms)
    step = -(-len(lines) // files)
    for file in range(files):
        content = ("\n".join(lines[file * step : (file + 1) * step]) + "\n").encode()
        for folder in folders:
            write_atomically(folder / f"{name}-{file}.jsonl", content)


def write_clock(shape: FleetShape, folder: Path, time_ms: int) -> None:
    """Write that the source has reported everything up to then."""
    write_atomically(folder / f"clock-{time_ms}.jsonl", f"{_common('clock', shape.cluster, time_ms)}}}\n".encode())
