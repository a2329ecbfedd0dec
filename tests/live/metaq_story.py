"""What happens in a MetaQ group, step by step, and what the core makes of what the collector wrote of it."""

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
from tests.simulation.core_run import CoreRun
from udfs.journal import QueueAssigned, QueueReleased, Rebalance
from udfs.rules import Rules

_WAIT_S = 60.0
_LOOK_EVERY_S = 0.1
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
        self._said = folder.with_suffix(".log")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it (again)."""
        with self._said.open("ab") as said:
            command = [
                str(Path(sys.executable).with_name("rebalance-monitor")),
                *("collect", "--metaq", self._cluster.zookeeper.address, "--cluster", CLUSTER),
                *("--out", str(self.folder)),
            ]
            self._process = subprocess.Popen(command, stderr=said, env=os.environ | QUICK)

    def stop(self) -> None:
        """Ask it to end, and wait."""
        assert self._process is not None
        self._process.terminate()
        assert self._process.wait(_WAIT_S) == 0, self.said()

    def kill(self) -> None:
        """End it without any order."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def lines(self) -> list[bytes]:
        """Answer all that it wrote, in order."""
        if not self.folder.is_dir():
            return []
        files = sorted(file for file in self.folder.iterdir() if not file.name.startswith((".", "_")))
        return [line for file in files for line in file.read_bytes().splitlines()]

    def said(self) -> str:
        """Answer all that it wrote to its standard error."""
        return self._said.read_text()

    def events(self) -> list[Event]:
        """Answer the same, decoded."""
        return [json.loads(line) for line in self.lines()]

    def wait_for(self, claim: Callable[[list[Event]], bool], what: str) -> None:
        """Return as soon as a claim about the events holds."""
        assert self._process is not None
        deadline = time.monotonic() + _WAIT_S
        while not claim(self.events()):
            assert self._process.poll() is None, f"the collector ended:\n{self.said()}"
            assert time.monotonic() < deadline, f"{what}: not in time\n{_tail(self.events())}\n{self.said()}"
            time.sleep(_LOOK_EVERY_S)


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


@dataclass(frozen=True)
class Step:
    """What happened since the step before, and who holds what now.

    Attributes:
        causes: Kinds of trigger, and the member or topic of each, of all rebalances since the step before.
        held: By member, as the members themselves say.
        at: A moment at which that was so, epoch ms.
    """

    what: str
    causes: frozenset[tuple[str, str | None]]
    held: dict[str, list[Partition]]
    at: int


@dataclass
class Story:
    """The steps of one group.

    Attributes:
        any_end: How a member went does not matter, only that it did: it may have gone while nobody looked.
    """

    group: str
    collected: Collected
    any_end: bool = False
    steps: list[Step] = field(default_factory=list)

    def tell(
        self,
        what: str,
        members: Sequence[MetaqMember],
        partitions: Sequence[Partition],
        *causes: tuple[str, str | None],
    ) -> None:
        """Note a step, once the members share what there is and the collector has written as much, and a clock."""
        if members:
            wait_until_shared(members, partitions)
        held: dict[str, list[Partition]] = {}

        def is_told(events: list[Event]) -> bool:
            held.clear()
            held.update((member.member_id, sorted(member.held)) for member in members)
            shared = sorted(partition for mine in held.values() for partition in mine) == sorted(partitions)
            return shared and _is_told(events, self.group, held)

        self.collected.wait_for(is_told, what)
        self.steps.append(Step(what, frozenset(causes), held, time.time_ns() // 1_000_000))
        at = self.steps[-1].at
        self.collected.wait_for(
            lambda events: any(one["type"] == "clock" and one["event_time"] > at for one in events), f"{what}: clock"
        )

    def check(self) -> CoreRun:
        """Compare what the core makes of the events with the steps."""
        lines = self.collected.lines()
        run = _run_at_each_clock(lines)
        assert run.rejected == [], run.rejected
        rows = sorted((one for one in run.rebalances if one.group_id == self.group), key=lambda one: one.generation)
        since = 0
        for step in self.steps:
            mine = [row for row in rows if since < row.event_time <= step.at]
            found, wanted = _causes(mine), step.causes
            if self.any_end:
                found, wanted = _ends_alike(found), _ends_alike(wanted)
            assert found == wanted, (step.what, mine)
            for origin in ("computed", "reported"):
                held = held_at(run, self.group, origin, step.at)
                assert held == {name: parts for name, parts in step.held.items() if parts}, (step.what, origin)
            since = step.at
        assert [row for row in rows if row.event_time > since] == []
        return run


def held_at(run: CoreRun, group: str, origin: str, at: int) -> dict[str, list[Partition]]:
    """Answer who held what at a moment, by the spans of a journal."""
    open_since: dict[tuple[str, Partition], int] = {}
    held: set[tuple[str, Partition]] = set()
    for change in run.changes:
        body = change.body
        if change.group_id != group or not isinstance(body, QueueAssigned | QueueReleased) or body.origin != origin:
            continue
        key = (body.member_id, (body.topic, body.broker or "", body.queue_id))
        if isinstance(body, QueueAssigned):
            open_since[key] = body.valid_from
        elif open_since.pop(key) <= at < body.valid_to:
            held.add(key)
    held |= {key for key, since in open_since.items() if since <= at}
    found: dict[str, list[Partition]] = {}
    for member, partition in sorted(held):
        found.setdefault(member, []).append(partition)
    return found


def details(run: CoreRun, group: str, kind: str) -> list[str]:
    """Answer what triggers of a kind say beside it."""
    return [
        trigger.detail or ""
        for row in run.rebalances
        if row.group_id == group
        for trigger in row.triggers
        if trigger.kind == kind
    ]


def _run_at_each_clock(lines: Sequence[bytes]) -> CoreRun:
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
    run.batch(newest + 10_000, batch)
    run.flush(newest + 10_001)
    return run


def _causes(rows: Sequence[Rebalance]) -> frozenset[tuple[str, str | None]]:
    return frozenset((trigger.kind, trigger.member_id or trigger.topic) for row in rows for trigger in row.triggers)


def _ends_alike(causes: frozenset[tuple[str, str | None]]) -> frozenset[tuple[str, str | None]]:
    ends = ("member_left", "session_expired", "member_gone")
    return frozenset(("member_gone" if kind in ends else kind, name) for kind, name in causes)


def _is_told(events: Sequence[Event], group: str, held: dict[str, list[Partition]]) -> bool:
    """Judge whether the last snapshot and the last reports say this, those of all members at one moment."""
    mine = [event for event in events if event.get("group") == group]
    snapshots = [event for event in mine if event["type"] == "group_snapshot"]
    if not snapshots or {one["member_id"] for one in snapshots[-1].get("members", ())} != set(held):
        return False
    reports = {one["member_id"]: one for one in mine if one["type"] == "assignment_reported"}
    if not held.keys() <= reports.keys() or len({reports[name]["event_time"] for name in held}) > 1:
        return False
    told = {
        name: sorted((one["topic"], one["broker"], one["queue_id"]) for one in reports[name]["queues"]) for name in held
    }
    return told == held


def _tail(events: Sequence[Event]) -> str:
    return "\n".join(json.dumps(event) for event in events if event["type"] != "clock")[-4_000:]
