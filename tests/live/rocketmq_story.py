"""Steps in the life of a RocketMQ group, and the core's rows from the events that the collector wrote."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streaming.collectors.event_log import EventFiles
from streaming.collectors.rocketmq.collector import RocketMqCollector
from tests.cluster_options import rocketmq_options
from tests.kit.rocketmq import RocketMq
from tests.kit.rocketmq_members import RocketMqMember
from tests.live.steps import Cause, Queue, Step, check_steps, own
from tests.simulation.core_run import CoreRun, run_of

_WAIT_S = 120.0
# Pause between two checks: the cluster under test needs the machine too.
_REST_S = 0.1
# A member that is late on a busy machine does not hang: one that is killed just then would be reported as expired.
_ANSWER_MS = 10_000
Event = dict[str, Any]


class Collected:
    """A collector beside a cluster, in this process, that polls on command."""

    def __init__(self, cluster: RocketMq, folder: Path, **options: Any) -> None:
        chosen = {"client_timeout_ms": _ANSWER_MS, **options}
        self._options = rocketmq_options(cluster.address, cluster="live", **chosen)
        self.folder = folder
        self.collector = self._make()
        self._decoded: dict[str, list[Event]] = {}

    def _make(self) -> RocketMqCollector:
        return RocketMqCollector(self._options, EventFiles(self.folder, "rocketmq"))

    def restart(self) -> None:
        """Let another one go on, as after a kill: this one says no word."""
        self.collector.stop()
        self.collector = self._make()

    def poll(self) -> None:
        """Take one complete round, if the cluster answers."""
        self.collector.observe_once()

    def lines(self) -> list[bytes]:
        """Return all that was written, in order."""
        return [line for file in sorted(self.folder.glob("*.jsonl")) for line in file.read_bytes().splitlines()]

    def events(self) -> list[Event]:
        """Return the same, decoded; each file once."""
        for file in sorted(self.folder.glob("*.jsonl")):
            if file.name not in self._decoded:
                self._decoded[file.name] = [json.loads(line) for line in file.read_bytes().splitlines()]
        return [event for name in sorted(self._decoded) for event in self._decoded[name]]

    def poll_until(self, claim: Callable[[list[Event]], bool], what: str) -> None:
        """Take rounds until a claim about the events holds."""
        deadline = time.monotonic() + _WAIT_S
        self.poll()
        while not claim(self.events()):
            reported = [event for event in self.events() if event["type"] != "clock"]
            assert time.monotonic() < deadline, f"{what}: not in time; {self.collector.status()}\n{reported[-6:]}"
            time.sleep(_REST_S)
            self.poll()


@contextlib.contextmanager
def collecting(cluster: RocketMq, folder: Path, **options: Any) -> Iterator[Collected]:
    """Follow a cluster until the block is left."""
    collected = Collected(cluster, folder, **options)
    try:
        yield collected
    finally:
        collected.collector.stop()


@dataclass
class Story:
    """The steps of one group."""

    group: str
    collected: Collected
    steps: list[Step] = field(default_factory=list)

    def record(
        self,
        what: str,
        members: Sequence[RocketMqMember],
        *causes: Cause,
        queues: Collection[Queue] | None = None,
    ) -> None:
        """Note a step, once the collector reports of these members what they report themselves.

        Args:
            queues: What they share then, each queue once. A member assigns by the list of any broker, and one that has
                just started lists some members before the others: until its next tick such a member holds too much.
        """
        held: dict[str, list[Queue]] = {}

        def is_reported(events: list[Event]) -> bool:
            held.clear()
            for member in members:
                held[member.wait_until_started()] = sorted(member.held(retries=True))
            shared = sorted(queue for mine in own(held).values() for queue in mine)
            return (queues is None or shared == sorted(queues)) and _is_reported(events, self.group, held)

        self.collected.poll_until(is_reported, what)
        at = self.collected.events()[-1]["event_time"]
        self.steps.append(Step(what, frozenset(causes), own(held), at))

    def check(self) -> CoreRun:
        """Compare what the core makes of the events with the steps."""
        run = run_of(self.collected.lines())
        check_steps(run, self.group, self.steps)
        return run


def lags_of(events: Sequence[Event], group: str) -> dict[Queue, tuple[int, int, bool]]:
    """Return the last report of each queue: how far the group is, of how many, and whether it had been further."""
    reported = [event for event in events if event["type"] == "progress" and event["group"] == group]
    return {
        (queue["topic"], queue["broker"], queue["queue_id"]): (
            queue["offset"],
            queue["end_offset"],
            queue.get("moved", True),
        )
        for event in reported
        for queue in event["queues"]
    }


def are_missed(events: Sequence[Event], member_id: str) -> bool:
    """Return whether the last snapshot says that this member did not answer."""
    snapshots = [event for event in events if event["type"] == "group_snapshot"]
    stderr = [
        observation
        for observation in snapshots[-1].get("observations", ())
        if observation["kind"] == "running_info_missing"
    ]
    return any(member_id in observation["detail"] for observation in stderr)


def _is_reported(events: Sequence[Event], group: str, held: dict[str, list[Queue]]) -> bool:
    """Return whether the last snapshot and the last reports say this."""
    mine = [event for event in events if event.get("group") == group]
    snapshots = [event for event in mine if event["type"] == "group_snapshot"]
    if not snapshots or {member["member_id"] for member in snapshots[-1].get("members", ())} != set(held):
        return False
    reports = {event["member_id"]: event for event in mine if event["type"] == "assignment_reported"}
    reported = {
        name: sorted((queue["topic"], queue["broker"], queue["queue_id"]) for queue in reports[name]["queues"])
        for name in held
        if name in reports
    }
    return reported == held
