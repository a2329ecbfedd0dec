"""What happens in a RocketMQ group, step by step, and what the core makes of what the collector wrote of it."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streaming.event_log import EventFiles
from streaming.rocketmq.collector import RocketMqCollector
from streaming.rocketmq.options import RETRY_PREFIX, RocketMqOptions
from tests.kit.rocketmq import RocketMq
from tests.kit.rocketmq_members import RocketMqMember
from tests.live.metaq_story import held_at
from tests.simulation.core_run import CoreRun
from udfs.rules import Rules

_WAIT_S = 120.0
Queue = tuple[str, str, int]
Event = dict[str, Any]


class Collected:
    """A collector beside a cluster, in this process, that looks when it is told to."""

    def __init__(self, cluster: RocketMq, folder: Path, **options: Any) -> None:
        self._options = RocketMqOptions((cluster.address,), "live", **{"client_timeout_ms": 2_000, **options})
        self.folder = folder
        self.collector = self._make()
        self._decoded: dict[str, list[Event]] = {}

    def _make(self) -> RocketMqCollector:
        return RocketMqCollector(self._options, EventFiles(self.folder, "rocketmq"))

    def restart(self) -> None:
        """Let another one go on, as after a kill: this one says no word."""
        self.collector.stop()
        self.collector = self._make()

    def look(self) -> None:
        """Take one complete round, if the cluster answers."""
        self.collector.observe_once()

    def lines(self) -> list[bytes]:
        """Answer all that was written, in order."""
        return [line for file in sorted(self.folder.glob("*.jsonl")) for line in file.read_bytes().splitlines()]

    def events(self) -> list[Event]:
        """Answer the same, decoded; each file once."""
        for file in sorted(self.folder.glob("*.jsonl")):
            if file.name not in self._decoded:
                self._decoded[file.name] = [json.loads(line) for line in file.read_bytes().splitlines()]
        return [event for name in sorted(self._decoded) for event in self._decoded[name]]

    def look_until(self, claim: Callable[[list[Event]], bool], what: str) -> None:
        """Take rounds until a claim about the events holds."""
        deadline = time.monotonic() + _WAIT_S
        self.look()
        while not claim(self.events()):
            told = [event for event in self.events() if event["type"] != "clock"]
            assert time.monotonic() < deadline, f"{what}: not in time; {self.collector.status()}\n{told[-6:]}"
            self.look()


@contextlib.contextmanager
def collecting(cluster: RocketMq, folder: Path, **options: Any) -> Iterator[Collected]:
    """Follow a cluster until the block is left."""
    collected = Collected(cluster, folder, **options)
    try:
        yield collected
    finally:
        collected.collector.stop()


@dataclass(frozen=True)
class Step:
    """What happened since the step before, and who holds what now.

    Attributes:
        causes: Kinds of trigger, and the member or topic of each, of all rebalances since the step before.
        held: By member, as the members themselves say. at: A moment at which that was so.
    """

    what: str
    causes: frozenset[tuple[str, str | None]]
    held: dict[str, list[Queue]]
    at: int


@dataclass
class Story:
    """The steps of one group."""

    group: str
    collected: Collected
    steps: list[Step] = field(default_factory=list)

    def tell(self, what: str, members: Sequence[RocketMqMember], *causes: tuple[str, str | None]) -> None:
        """Note a step, once the collector tells of these members what they say of themselves."""
        held: dict[str, list[Queue]] = {}

        def is_told(events: list[Event]) -> bool:
            held.clear()
            for member in members:
                held[member.wait_until_started()] = sorted(member.held(retries=True))
            return _is_told(events, self.group, held)

        self.collected.look_until(is_told, what)
        own = {name: [queue for queue in mine if not queue[0].startswith(RETRY_PREFIX)] for name, mine in held.items()}
        at = self.collected.events()[-1]["event_time"]
        self.steps.append(Step(what, frozenset(causes), own, at))

    def check(self) -> CoreRun:
        """Compare what the core makes of the events with the steps."""
        run = run_of(self.collected.lines())
        rows = sorted((one for one in run.rebalances if one.group_id == self.group), key=lambda one: one.generation)
        since = 0
        for step in self.steps:
            mine = [row for row in rows if since < row.event_time <= step.at]
            found = {
                (trigger.kind, trigger.member_id or trigger.topic)
                for row in mine
                for trigger in row.triggers
                if not (trigger.topic or "").startswith(RETRY_PREFIX)
            }
            assert found == step.causes, (step.what, mine)
            for origin in ("computed", "reported"):
                held = {
                    name: [queue for queue in queues if not queue[0].startswith(RETRY_PREFIX)]
                    for name, queues in held_at(run, self.group, origin, step.at).items()
                }
                wanted = {name: queues for name, queues in step.held.items() if queues}
                assert {name: queues for name, queues in held.items() if queues} == wanted, (step.what, origin)
            since = step.at
        return run


def run_of(lines: Sequence[bytes]) -> CoreRun:
    """Run events through the core, a batch to each round."""
    run = CoreRun(Rules())
    batch: list[bytes] = []
    newest = 0
    for line in lines:
        event = json.loads(line)
        newest = max(newest, event["event_time"])
        batch.append(line)
        if event["type"] == "clock":
            run.batch(newest + 10_000, batch)
            batch = []
    run.flush(newest + 10_001)
    assert run.rejected == [], run.rejected
    return run


def are_missed(events: Sequence[Event], member_id: str) -> bool:
    """Judge whether the last snapshot says that this member did not answer."""
    snapshots = [event for event in events if event["type"] == "group_snapshot"]
    said = [one for one in snapshots[-1].get("observations", ()) if one["kind"] == "running_info_missing"]
    return any(member_id in one["detail"] for one in said)


def _is_told(events: Sequence[Event], group: str, held: dict[str, list[Queue]]) -> bool:
    """Judge whether the last snapshot and the last reports say this."""
    mine = [event for event in events if event.get("group") == group]
    snapshots = [event for event in mine if event["type"] == "group_snapshot"]
    if not snapshots or {one["member_id"] for one in snapshots[-1].get("members", ())} != set(held):
        return False
    reports = {one["member_id"]: one for one in mine if one["type"] == "assignment_reported"}
    told = {
        name: sorted((one["topic"], one["broker"], one["queue_id"]) for one in reports[name]["queues"])
        for name in held
        if name in reports
    }
    return told == held
