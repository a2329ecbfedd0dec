"""A run of chaos: carries out a script with real processes, and writes down what really happened and when."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.crash.chaos_clusters import GROUP, ChaosCluster, Member, Queue
from tests.crash.chaos_script import Order
from tests.crash.chaos_truth import Life, Span, Truth, merged
from tests.job.commands import Ended, ManyRuns, Running, follow, once

CLUSTER = "live"
_POLL_EVERY_S = 0.2
_STOP_S = 60.0
_REPORTED_WITHIN_S = 240.0
_UNNOTICED_MS = 30_000
_CONFIG = """
[job]
materialize_interval_ms = 1000
trigger_interval_ms = 1000

[spark]
driver_memory = "1g"

[state]
shards = 4
shuffle_partitions = 2

[rocketmq]
poll_interval_ms = 1000
client_timeout_ms = 2000
running_info_share = 1.0

[metaq]
poll_interval_ms = 1000
progress_interval_ms = 2000
"""
Event = dict[str, Any]


class Chaos:
    """One run.

    Args:
        cluster: That is up.
        folder: For the events, the tables, the checkpoint and what the processes say.
    """

    def __init__(self, cluster: ChaosCluster, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.cluster = cluster
        self.place = folder
        self.lives: dict[str, Life] = {}
        self.away: dict[str, list[Span]] = defaultdict(list)
        self._events = folder / "events"
        self._events.mkdir()
        self._config = folder / "chaos.toml"
        self._config.write_text(_CONFIG)
        self._running: dict[str, Running] = {}
        self._members: dict[str, Member] = {}
        self._life_of: dict[str, Life] = {}
        self._decoded: dict[str, list[Event]] = {}
        self._failed = threading.Event()
        self._over = threading.Event()
        self._errors: list[BaseException] = []
        self._supervised = threading.RLock()
        self.start_monitor("collector")
        self.start_monitor("job")

    # ---- the monitor's own processes

    def start_monitor(self, which: str) -> None:
        """Start the collector or the job."""
        arguments: list[str | Path]
        if which == "collector":
            arguments = ["collect", *self.cluster.arguments, "--cluster", CLUSTER, "--out", self._events]
            arguments += ["--config", self._config]
        else:
            arguments = follow(self._events, self.place, self._config)
        with self._supervised:
            self._running[which] = Running(arguments, self.place / f"{which}.log")

    def kill_monitor(self, which: str) -> None:
        """End the collector or the job by force."""
        with self._supervised:
            self._running.pop(which).kill()

    def output(self, which: str) -> str:
        """Return all that the collector or the job has ever written to its standard error."""
        return (self.place / f"{which}.log").read_text(errors="replace")

    def drain(self, runs: ManyRuns) -> Ended:
        """Let a last job read everything that is left."""
        return runs.run(once(self._events, self.place, self._config, ["--flush"]))

    def close(self) -> None:
        """End whatever still runs."""
        self._over.set()
        for running in self._running.values():
            running.kill()
        for member in self._members.values():
            member.kill()

    # ---- the script

    def run(self, orders: Sequence[Order]) -> None:
        """Follow the script: orders for one target run one after another, orders for several at their times."""
        # A job that is killed before its first batch has nothing to lose.
        self._wait_until_job_works()
        by_target: dict[str, list[Order]] = defaultdict(list)
        for order in orders:
            by_target[order.target].append(order)
        self._beside = [threading.Thread(target=self._guarded, args=(work,)) for work in (self._watch, self._supervise)]
        for thread in self._beside:
            thread.start()
        began = time.monotonic()
        threads = [
            threading.Thread(target=self._guarded, args=(self._do_all, mine, began)) for mine in by_target.values()
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._raise()

    def _guarded(self, work: Callable[..., None], *arguments: object) -> None:
        try:
            work(*arguments)
        except BaseException as error:  # noqa: BLE001 - it is raised where the run is waited for
            self._errors.append(error)
            self._failed.set()

    def _raise(self) -> None:
        if self._errors:
            raise self._errors[0]

    def _do_all(self, orders: Sequence[Order], began: float) -> None:
        for order in orders:
            if self._failed.wait(max(0.0, began + order.at_s - time.monotonic())):
                return
            if order.target in ("collector", "job"):
                self._do_to_monitor(order)
            elif order.target in self.cluster.things:
                self._do_to_thing(order)
            else:
                self._do_to_member(order)

    def _do_to_monitor(self, order: Order) -> None:
        """Start the job, or kill it; the end of the run shows how it ends in order."""
        if order.what == "starts":
            self.start_monitor(order.target)
            return
        if order.target == "job" and order.what == "is killed":
            # It takes long to start: if all kills came as they come, hardly one would find it at work.
            self._wait_until_job_works()
        self.kill_monitor(order.target)

    def _wait_until_job_works(self) -> None:
        job = self._running["job"]
        job.wait_until(lambda: '"batch"' in job.stderr(), "the first batch of this start")

    def _do_to_thing(self, order: Order) -> None:
        if order.what == "starts":
            self.cluster.bring_back(order.target)
            since, _ = self.away[order.target][-1]
            self.away[order.target][-1] = (since, _now_ms())
        else:
            self.away[order.target].append((_now_ms(), _now_ms() + 3_600_000))
            self.cluster.take_away(order.target, order.what)

    def _do_to_member(self, order: Order) -> None:
        if order.what == "starts":
            self._start_member(order.target)
            return
        member, life = self._members.pop(order.target), self._life_of[order.target]
        life.ended_ms, life.ending = _now_ms(), order.what
        if order.what == "stops":
            try:
                member.stop(_STOP_S)
            except (OSError, subprocess.TimeoutExpired):
                life.ending = "is killed"
        member.kill()

    def _start_member(self, target: str) -> None:
        """Start a member as its supervisor would: try again while a server that it needs at its start is away."""
        for attempt in itertools.count(1):
            name = f"{target}-{attempt}"
            life = self.lives[self.cluster.member_id(name)] = self._life_of[target] = Life(_now_ms())
            member = self._members[target] = self.cluster.start_member(name)
            member.wait_until(lambda member=member: member.has_ended or _has_started(member), _REPORTED_WITHIN_S)
            if _has_started(member) or self._failed.is_set():
                return
            life.ended_ms, life.ending = member.reports[-1].at_ms, "is killed"
            member.kill()

    def _supervise(self) -> None:
        """Start the collector again, until the run is over, when it ended because there was nothing to collect from."""
        while not self._over.wait(_POLL_EVERY_S):
            with self._supervised:
                running = self._running.get("collector")
                if running is not None and not running.is_running:
                    assert "Check that it runs" in running.stderr(), running.stderr()[-3_000:]
                    self.start_monitor("collector")

    # ---- what the cluster itself has

    def _watch(self) -> None:
        """Note, until the run is over, from when to when the cluster has each member."""
        before: set[str] = set()
        while not self._over.wait(_POLL_EVERY_S):
            requested_ms, members = _now_ms(), self.cluster.members()
            if members is None:
                before = set()
                continue
            for name in members & self.lives.keys():
                observed = self.lives[name].listed
                if name in before:
                    observed[-1] = (observed[-1][0], requested_ms)
                else:
                    observed.append((requested_ms, requested_ms))
            if self.cluster.keeper is not None:
                for name in before - members:
                    life = self.lives.get(name)
                    if life is not None and life.ended_ms is None:
                        life.given_up += 1
            before = members

    # ---- the end

    def wait_until_reported(self) -> dict[str, list[Queue]]:
        """Wait until the members share the queues and the collector reports so; return what each holds."""
        deadline = time.monotonic() + _REPORTED_WITHIN_S
        while True:
            held = self.cluster.wait_until_shared(list(self._members.values()))
            if self._is_reported(held):
                return held
            assert time.monotonic() < deadline, f"{held} is not reported:\n{self._tail()}"
            self._raise()
            time.sleep(_POLL_EVERY_S)

    def stop(self) -> None:
        """Stop the collector in order, then the job, after one more round."""
        since = _now_ms()
        deadline = time.monotonic() + _REPORTED_WITHIN_S
        while not any(at_ms > since for at_ms in self._clocks()):
            assert time.monotonic() < deadline, "no round ends any more"
            time.sleep(_POLL_EVERY_S)
        self._over.set()
        for thread in self._beside:
            thread.join()
        self._raise()
        # A process that has just been started does not answer signals yet.
        job = self._running["job"]
        job.wait_until(lambda: '"msg": "batches"' in job.stderr(), "the job has read a batch")
        for which in ("collector", "job"):
            self._running[which].signal(signal.SIGTERM)
            ended = self._running[which].wait()
            assert ended.exit_code == 0, (which, ended.stderr[-3_000:])

    def truth(self) -> Truth:
        """Return what happened."""
        cluster = self.cluster
        brokers = [
            span
            for thing in cluster.things
            if "broker" in thing
            # A broker that was back for less than this may have been in no route: two outages count as one.
            for span in merged(self.away[thing], _UNNOTICED_MS)
        ]
        # While the keeper is away, brokers' sessions may expire as well.
        brokers += self.away[cluster.keeper] if cluster.keeper else []
        return Truth(
            lives=self.lives,
            clocks=self._clocks(),
            queues_moved=[
                (since, until + cluster.takes_moves_ms)
                for since, until in brokers
                if until - since >= cluster.forgiven_ms
            ],
            stops_expire=[
                (since - int(_STOP_S * 1_000), until) for since, until in self.away[cluster.keeper or "nothing"]
            ],
        )

    def events(self) -> list[Event]:
        """Return all that the collector has written, in order."""
        for file in sorted(self._events.glob("[!._]*")):
            if file.name not in self._decoded:
                self._decoded[file.name] = [json.loads(line) for line in file.read_bytes().splitlines()]
        return [event for name in sorted(self._decoded) for event in self._decoded[name]]

    def _clocks(self) -> list[int]:
        return sorted(event["event_time"] for event in self.events() if event["type"] == "clock")

    def _is_reported(self, held: dict[str, list[Queue]]) -> bool:
        mine = [event for event in self.events() if event.get("group") == GROUP]
        snapshots = [event for event in mine if event["type"] == "group_snapshot"]
        if not snapshots or {shown["member_id"] for shown in snapshots[-1].get("members", ())} != set(held):
            return False
        reports = {event["member_id"]: event["queues"] for event in mine if event["type"] == "assignment_reported"}
        reported = {
            name: sorted(
                (queue["topic"], queue["broker"], queue["queue_id"])
                for queue in queues
                if not queue["topic"].startswith("%")
            )
            for name, queues in reports.items()
            if name in held
        }
        return reported == held

    def _tail(self) -> str:
        return "\n".join(json.dumps(event) for event in self.events() if event["type"] != "clock")[-4_000:]


def _has_started(member: Member) -> bool:
    return any(report.event == "started" for report in member.reports)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
