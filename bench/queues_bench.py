"""Bench: what it costs to follow 100,000 queues that move each minute, beside the heartbeats of their consumers.

One process decides for 1,000 groups of ten members and 100 queues each, in minutes of twelve batches. A member sends a
heartbeat every 15 s; with offsets, each batch has a new commit and a new end of a twelfth of the queues. Figures are
medians of computing time; minutes with and without offsets alternate.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from bench.fleet import FleetShape
from bench.state_bench import heartbeats, joins, topics
from streaming.settings.model import load
from udfs.group import coordinator
from udfs.model.config import CoreConfig
from udfs.packets.packet import Packet, decode_packet, encode_packet, group_keys, queue_keys
from udfs.packets.progress_columns import NamedGroup, PackedEnds, PackedNames, PackedProgress, ProgressColumns
from udfs.shard.shard import Shard

_SHAPE = FleetShape(groups=1_000, topics=1_000, queues_per_topic=100)
_MINUTES = 12  # the first ones fill the state: what a queue moves by is known after a while
_BATCHES = 12
_STEP_MS = 60_000 // _BATCHES


class Queues:
    """Commits and ends of all queues, as packets carry them; each group reads a topic of its own."""

    def __init__(self) -> None:
        names = [f"group-{group:06d}" for group in range(_SHAPE.groups)]
        self.groups = np.repeat(group_keys(_SHAPE.cluster, names), _SHAPE.queues_per_topic)
        queues = [(f"topic-{topic:04d}", None, queue) for topic in range(_SHAPE.topics) for queue in range(100)]
        self.keys = queue_keys(queues)
        self._group_names = dict(zip(self.groups.tolist()[::100], names, strict=True))
        self._queue_names = dict(zip(self.keys.tolist(), queues, strict=True))

    def move(self, chosen: np.ndarray[Any, Any], at: int, minute: int) -> tuple[PackedProgress, PackedEnds]:
        """Let queues move by 1,000 messages a minute; their groups are 50 behind."""
        times = np.full(len(chosen), at, np.int64)
        ends = np.full(len(chosen), 1_000 * (minute + 1), np.int64)
        unknown = np.full(len(chosen), -1, np.int64)
        commits = np.ones(len(chosen), np.bool_)
        keys = self.groups[chosen], self.keys[chosen]
        columns = ProgressColumns(*keys, times, ends - 50, unknown, unknown, commits, unknown, unknown)
        groups = {key: NamedGroup(self._group_names[key], "kafka") for key in set(self.groups[chosen].tolist())}
        queues = {key: self._queue_names[key] for key in self.keys[chosen].tolist()}
        return (
            PackedProgress.pack(columns, PackedNames.pack(groups, queues)),
            PackedEnds.pack(self.keys[chosen], times, ends),
        )


def packets(queues: Queues | None, minute: int) -> Iterator[bytes]:
    """Yield the batches of a minute."""
    for batch in range(_BATCHES):
        at = _SHAPE.start_ms + 10_000 + 60_000 * minute + _STEP_MS * batch
        payload, _ = heartbeats(_SHAPE, list(range(_SHAPE.groups)), batch % 3, at)
        packet = decode_packet(payload)
        if queues is not None:
            packet.progress, packet.ends = queues.move(np.arange(batch, len(queues.keys), _BATCHES), at, minute)
        yield encode_packet(packet)


class Follower:
    """The one shard of the fleet, from batch to batch."""

    def __init__(self, config: CoreConfig) -> None:
        self._config = config
        self.state: bytes | None = None
        self.rows = 0
        events = [*topics(_SHAPE), *joins(_SHAPE, list(range(_SHAPE.groups)))]
        self.advance(encode_packet(Packet(newest_ms=_SHAPE.start_ms + 10_000, events=events)))

    def advance(self, payload: bytes) -> None:
        """Decide one batch, as the job does: state decoded, packet applied, state encoded."""
        shard = Shard(_SHAPE.cluster, 0, self.state, self._config, coordinator)
        self.rows += sum(1 for _ in shard.advance([decode_packet(payload)], _SHAPE.start_ms + 10**9))
        self.state = shard.encode()

    def minute(self, payloads: list[bytes]) -> float:
        """Decide the batches of a minute; return the computing time in seconds."""
        began = time.process_time()
        for payload in payloads:
            self.advance(payload)
        return time.process_time() - began


def main() -> None:
    """Print the figures."""
    config = load(overrides={"state.shards": 1}).core_config()
    queues = Queues()
    still, moving = Follower(config), Follower(config)
    alone, together = [], []
    for minute in range(_MINUTES):
        alone.append(still.minute([*packets(None, minute)]))
        together.append(moving.minute([*packets(queues, minute)]))
    without, with_offsets = statistics.median(alone[3:]), statistics.median(together[3:])
    count = len(queues.keys)
    print(f"a minute of heartbeats of {_SHAPE.members:,} members: {1e3 * without:.0f} ms")
    print(f"and {count:,} commits and ends: {1e3 * with_offsets:.0f} ms, {with_offsets / without:.2f} times")
    print(f"a commit and an end: {1e6 * (with_offsets - without) / count:.2f} microseconds")
    print(f"rows of the last minutes: {moving.rows - still.rows:,}")
    print(f"state: {(len(moving.state or b'') - len(still.state or b'')) / count:.1f} bytes a queue")


if __name__ == "__main__":
    main()
