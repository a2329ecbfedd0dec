"""Bench: a group of thousands of members: what one join costs, and what a backlog of rebalances takes of memory.

One join: computing time of the whole batch of its shard (state decoded, group advanced, state encoded, rows as JSON),
over the time in which msgspec parses the joins of all its members from JSON lines, both in this process, alternating;
beside it the bytes that it adds to the journal. Medians over joins of random ids.

The backlog: joins one after another, all due in one batch, with the bound on a group's work in a batch and without;
each in its own process; the peak is reported above what it takes before the backlog.
"""

from __future__ import annotations

import random
import resource
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Iterable, Sequence

import msgspec

from streaming.settings.model import load
from udfs.group import coordinator as group_logic
from udfs.model.events import AnyEvent, MemberJoined, QueueInfo, TopicQueues
from udfs.model.journal import Change, Rebalance, Unfinished
from udfs.model.systems import System
from udfs.packets.packet import Packet, carry_event
from udfs.shard.shard import Shard

_T0 = 1_767_225_600_000
_FAR = _T0 + 10**9  # a batch's timestamp well after every event
_MEMBERS, _QUEUES = 5_000, 10_000
_JOINS = 15
_CASES: tuple[tuple[System, str], ...] = (("kafka", "range"), ("rocketmq", "AVG"), ("kafka", "sticky"))
_BACKLOG_MEMBERS, _BACKLOG = 1_000, 2_000
_UNBOUNDED = 10**12


class LargeGroup:
    """One group in one shard, fed batch by batch through encoded states."""

    def __init__(self, system: System, strategy: str, queues: int, topics: int, work: int | None = None) -> None:
        config = load(None, {"state.shards": 1, "time.allowed_lateness_ms": 0}).core_config()
        self._config = config if work is None else msgspec.structs.replace(config, max_group_work=work)
        self._system: System = system
        self._strategy = strategy
        self._topics = tuple(f"orders-{number}" for number in range(topics))
        self._per_topic = queues // topics
        self._chance = random.Random(1)
        self._state: bytes | None = None

    def topics(self) -> list[TopicQueues]:
        """Return the events that report the topics."""
        return [self._topic(name) for name in self._topics]

    def _topic(self, name: str) -> TopicQueues:
        count, queues = self._per_topic, None
        if self._system != "kafka":
            queues = tuple(QueueInfo(number, f"b{broker}") for broker in range(4) for number in range(count // 4))
        return TopicQueues(
            schema_version=1,
            event_time=_T0,
            system=self._system,
            cluster="c1",
            topic=name,
            queues=queues,
            queue_count=None if queues else count,
        )

    def join(self, at: int) -> MemberJoined:
        """Return the join of a member with a random id, as Kafka's clients have them."""
        return MemberJoined(
            schema_version=1,
            event_time=_T0 + at,
            system=self._system,
            cluster="c1",
            group="orders",
            member_id=f"consumer-orders-1-{uuid.UUID(int=self._chance.getrandbits(128))}",
            client_id="consumer-orders-1",
            host="/10.0.0.1",
            subscriptions=self._topics,
            strategies=(self._strategy,),
            session_timeout_ms=3_600_000,
        )

    def batch(self, events: Iterable[AnyEvent], clock: int) -> tuple[int, int, bool]:
        """Feed a batch; return rebalances, bytes of changes, and whether there is more to do."""
        packet = Packet(newest_ms=_T0 + clock, events=[carry_event(event, "", "") for event in events])
        rebalances = size = 0
        unfinished = False
        shard = Shard("c1", 0, self._state, self._config, group_logic)
        for row in shard.advance([packet], _FAR):
            if isinstance(row, Unfinished):
                unfinished = True
                continue
            text = msgspec.json.encode(row)
            rebalances += isinstance(row, Rebalance)
            size += len(text) if isinstance(row, Change) else 0
        self._state = shard.encode()
        return rebalances, size, unfinished


def _one_join(system: System, strategy: str, topics: int) -> None:
    group = LargeGroup(system, strategy, _QUEUES, topics)
    joins = [group.join(1) for _ in range(_MEMBERS)]
    lines = [msgspec.json.encode(join) for join in joins]
    group.batch([*group.topics(), *joins], 2)
    took: list[float] = []
    parsed: list[float] = []
    sizes: list[int] = []
    for number in range(_JOINS):
        at = 10 + number
        join = group.join(at)
        begin = time.process_time()
        _, size, _ = group.batch([join], at + 1)
        took.append(time.process_time() - begin)
        sizes.append(size)
        begin = time.process_time()
        for line in lines:
            msgspec.json.decode(line, type=AnyEvent)
        parsed.append(time.process_time() - begin)
    seconds = statistics.median(took)
    print(
        f"  {system}.{strategy}, {topics} topics: {seconds * 1_000:.0f} ms computing (goal 100),"
        f" {seconds / statistics.median(parsed):.1f} times its members' joins parsed;"
        f" {statistics.median(sizes) / 1_000:.1f} kB of journal (goal 50), at most {max(sizes) / 1_000:.1f}"
    )


def _backlog(work: int) -> None:
    """Apply a backlog; print the peak of memory above the level before, in MB, and the number of batches."""
    group = LargeGroup("kafka", "range", _QUEUES, 1, work)
    group.batch([*group.topics(), *(group.join(1) for _ in range(_BACKLOG_MEMBERS))], 2)
    before = _peak_mb()
    joins = [group.join(10 + number) for number in range(_BACKLOG)]
    batches, found, unfinished = 0, 0, True
    while unfinished:
        rebalances, _, unfinished = group.batch(joins, 10 + _BACKLOG)
        joins, batches, found = [], batches + 1, found + rebalances
    if found != _BACKLOG:
        raise RuntimeError(f"{found} rebalances instead of {_BACKLOG}")
    print(f"{_peak_mb() - before:.0f} {batches} {time.process_time():.0f}")


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _measured(work: int) -> Sequence[str]:
    command = [sys.executable, "-m", "bench.large_bench", str(work)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def main() -> None:
    """Measure and print."""
    print(f"\none join into {_MEMBERS:,} members with {_QUEUES:,} queues (medians of {_JOINS}):")
    for system, strategy in _CASES:
        for topics in (1, 10):
            _one_join(system, strategy, topics)
    print(f"\na backlog of {_BACKLOG:,} joins, {_BACKLOG_MEMBERS:,} members with {_QUEUES:,} queues, kafka.range:")
    for name, work in (("bounded", load().limits.max_group_work), ("in one batch", _UNBOUNDED)):
        peak, batches, seconds = _measured(work)
        print(f"  {name}: {peak} MB more at the peak, {batches} batches, {seconds} s of computing")


if __name__ == "__main__":
    _backlog(int(sys.argv[1])) if len(sys.argv) > 1 else main()
