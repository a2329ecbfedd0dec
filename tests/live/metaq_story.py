"""Steps in the life of a MetaQ group, and the core's rows from the events that the collector wrote."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.kit.metaq import MetaqCluster
from tests.kit.metaq_members import MetaqMember, Partition, wait_until_shared
from tests.live.steps import Cause, Step, check_steps
from tests.simulation.core_run import CoreRun, run_of

_WAIT_S = 240.0
_POLL_EVERY_S = 0.1
CLUSTER = "live"
QUICK = {
    "REBALANCE_MONITOR_METAQ__POLL_INTERVAL_MS": "500",
    "REBALANCE_MONITOR_METAQ__PROGRESS_INTERVAL_MS": "1000",
}
Event = dict[str, Any]


class Collected:
    """A collector beside a cluster, and the folder that it writes."""

    def __init__(self, cluster: MetaqCluster, folder: Path) -> None:
        self._cluster = cluster
        self.folder = folder
        self._stderr = folder.with_suffix(".log")
        self._process: subprocess.Popen[bytes] | None = None
        self._decoded: list[Event] = []

    def start(self) -> None:
        """Start it (again)."""
        with self._stderr.open("ab") as stderr:
            command = [
                str(Path(sys.executable).with_name("rebalance-monitor")),
                *("collect", "--metaq", self._cluster.zookeeper.address, "--cluster", CLUSTER),
                *("--out", str(self.folder)),
            ]
            self._process = subprocess.Popen(command, stderr=stderr, env=os.environ | QUICK)

    def stop(self) -> None:
        """Request it to end, and wait."""
        assert self._process is not None
        self._process.terminate()
        assert self._process.wait(_WAIT_S) == 0, self.stderr()

    def kill(self) -> None:
        """End it without any order."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def lines(self) -> list[bytes]:
        """Return all that it wrote, in order."""
        if not self.folder.is_dir():
            return []
        files = sorted(file for file in self.folder.iterdir() if not file.name.startswith((".", "_")))
        return [line for file in files for line in file.read_bytes().splitlines()]

    def stderr(self) -> str:
        """Return all that it wrote to its standard error."""
        return self._stderr.read_text()

    def events(self) -> list[Event]:
        """Return the same, decoded; each line once."""
        lines = self.lines()
        self._decoded += map(json.loads, lines[len(self._decoded) :])
        return self._decoded

    def wait_for(self, claim: Callable[[list[Event]], bool], what: str) -> None:
        """Return as soon as a claim about the events holds."""
        assert self._process is not None
        deadline = time.monotonic() + _WAIT_S
        while not claim(self.events()):
            assert self._process.poll() is None, f"the collector ended:\n{self.stderr()}"
            assert time.monotonic() < deadline, f"{what}: not in time\n{_tail(self.events())}\n{self.stderr()}"
            time.sleep(_POLL_EVERY_S)


@contextlib.contextmanager
def collecting(cluster: MetaqCluster, folder: Path) -> Iterator[Collected]:
    """Follow a cluster until the block is left."""
    collected = Collected(cluster, folder)
    try:
        collected.start()
        collected.wait_for(lambda events: any(event["type"] == "clock" for event in events), "the first round")
        yield collected
    finally:
        collected.kill()


@dataclass
class Story:
    """The steps of one group.

    Attributes:
        any_end: How a member departed does not matter, only that it did: it may have been between two polls.
    """

    group: str
    collected: Collected
    any_end: bool = False
    steps: list[Step] = field(default_factory=list)

    def record(
        self,
        what: str,
        members: Sequence[MetaqMember],
        partitions: Sequence[Partition],
        *causes: Cause,
    ) -> None:
        """Note a step, once the members share what there is and the collector has written as much, and a clock."""
        if members:
            wait_until_shared(members, partitions)
        held: dict[str, list[Partition]] = {}

        def is_reported(events: list[Event]) -> bool:
            held.clear()
            held.update((member.member_id, sorted(member.held)) for member in members)
            shared = sorted(partition for mine in held.values() for partition in mine) == sorted(partitions)
            return shared and _is_reported(events, self.group, held)

        self.collected.wait_for(is_reported, what)
        self.steps.append(Step(what, frozenset(causes), held, time.time_ns() // 1_000_000))
        at = self.steps[-1].at
        self.collected.wait_for(
            lambda events: any(event["type"] == "clock" and event["event_time"] > at for event in events),
            f"{what}: clock",
        )

    def check(self) -> CoreRun:
        """Compare what the core makes of the events with the steps."""
        run = run_of(self.collected.lines())
        assert check_steps(run, self.group, self.steps, any_end=self.any_end) == []
        return run


def details(run: CoreRun, group: str, kind: str) -> list[str]:
    """Return what triggers of a kind say beside it."""
    return [
        trigger.detail or ""
        for row in run.rebalances
        if row.group_id == group
        for trigger in row.triggers
        if trigger.kind == kind
    ]


def _is_reported(events: Sequence[Event], group: str, held: dict[str, list[Partition]]) -> bool:
    """Return whether the last snapshot and the last reports say this, those of all members at one moment."""
    mine = [event for event in events if event.get("group") == group]
    snapshots = [event for event in mine if event["type"] == "group_snapshot"]
    if not snapshots or {member["member_id"] for member in snapshots[-1].get("members", ())} != set(held):
        return False
    reports = {event["member_id"]: event for event in mine if event["type"] == "assignment_reported"}
    if not held.keys() <= reports.keys() or len({reports[name]["event_time"] for name in held}) > 1:
        return False
    reported = {
        name: sorted((queue["topic"], queue["broker"], queue["queue_id"]) for queue in reports[name]["queues"])
        for name in held
    }
    return reported == held


def _tail(events: Sequence[Event]) -> str:
    return "\n".join(json.dumps(event) for event in events if event["type"] != "clock")[-4_000:]
