"""Bench: one poll round over a large RocketMQ cluster, against a server in a process of its own on the same machine.

The figures are the time of a whole round over the interval in which it must be done, and how much memory a hundred
rounds leave behind. Nothing is cut off at the interval's end here, so that a busy machine shows a longer round and not
a smaller one; the seconds of computing of both processes are what it costs.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from streaming.collectors.event_log import EventFiles
from streaming.collectors.rocketmq.collector import RocketMqCollector
from streaming.collectors.rocketmq.factory import options_of
from streaming.collectors.rocketmq.options import RocketMqOptions
from streaming.machine.logs import configure
from streaming.settings.model import load

_GROUPS = 2_000
_MEMBERS = 10
_INTERVAL_MS = 5_000
_UNCUT_MS = 600_000
_ROUNDS = int(os.environ.get("BENCH_ROUNDS", "100"))
_MIB = 1024 * 1024


def main() -> None:
    """Measure, and print."""
    configure("error", "auto")
    print(f"RocketMQ: {_GROUPS:,} groups of {_MEMBERS} members, two brokers, interval {_INTERVAL_MS:,} ms")
    command = [sys.executable, "-m", "tests.kit.rocketmq_server", "--groups", str(_GROUPS), "--members", str(_MEMBERS)]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server,
    ):
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            places = json.loads(server.stdout.readline())
            given = {"rocketmq.name_servers": ";".join(places["name_servers"]), "rocketmq.cluster": "bench"}
            options = options_of(load(None, given | {"rocketmq.poll_interval_ms": _UNCUT_MS}).rocketmq)
            _measure(options, EventFiles(Path(folder), "bench"), psutil.Process(server.pid))
        finally:
            server.stdin.close()


def _measure(options: RocketMqOptions, log: EventFiles, server: psutil.Process) -> None:
    collector = RocketMqCollector(options, log)
    process = psutil.Process()
    walls, busy, served, sizes = [], [], [], []
    for number in range(_ROUNDS):
        began, used, used_by_server = time.monotonic(), _used_s(process), _used_s(server)
        assert collector.poll()
        walls.append(time.monotonic() - began)
        busy.append(_used_s(process) - used)
        served.append(_used_s(server) - used_by_server)
        sizes.append(process.memory_info().rss / _MIB)
        status = collector.status()
        if number in (0, 1, 4, 9) or number % 25 == 24:
            print(
                f"  round {number + 1:3d}: {walls[-1]:5.2f} s, {busy[-1]:5.2f} s of computing, {sizes[-1]:4.0f} MiB, "
                f"{status.groups:,} groups; {status.detail or 'nothing missing'}"
            )
    collector.stop()
    first = len(walls) // 4  # before, members are reported for the first time
    print(
        f"  settled: median {statistics.median(walls[first:]):.2f} s, longest {max(walls[first:]):.2f} s: "
        f"{statistics.median(walls[first:]) * 1_000 / _INTERVAL_MS:.2f} of the interval; computing "
        f"{statistics.median(busy[first:]):.2f} s, the server {statistics.median(served[first:]):.2f} s"
    )
    quarter = len(sizes) // 4
    print(f"  memory: {sizes[quarter]:.0f} MiB after {quarter + 1} rounds, {sizes[-1]:.0f} MiB after {len(sizes)}")


def _used_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
