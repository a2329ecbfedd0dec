"""Bench: one poll round over a large RocketMQ cluster, against a server in a process of its own on the same machine.

The figures are the time of a round over the interval in which it must be done, and how much memory a hundred rounds
leave behind. Both processes share the machine: the round alone is faster.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from streaming.event_log import EventFiles
from streaming.logs import configure
from streaming.rocketmq.collector import RocketMqCollector
from streaming.rocketmq.options import RocketMqOptions

_GROUPS = 2_000
_MEMBERS = 10
_INTERVAL_MS = 5_000
_ROUNDS = int(os.environ.get("BENCH_ROUNDS", "100"))
_MIB = 1024 * 1024


def main() -> None:
    """Measure, and print."""
    configure("error")
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
            options = RocketMqOptions(tuple(places["name_servers"]), "bench", poll_interval_ms=_INTERVAL_MS)
            _measure(options, EventFiles(Path(folder), "bench"))
        finally:
            server.stdin.close()


def _measure(options: RocketMqOptions, log: EventFiles) -> None:
    collector = RocketMqCollector(options, log)
    process = psutil.Process()
    walls, busy, sizes = [], [], []
    for number in range(_ROUNDS):
        began, used = time.monotonic(), _used_s()
        assert collector.poll()
        walls.append(time.monotonic() - began)
        busy.append(_used_s() - used)
        sizes.append(process.memory_info().rss / _MIB)
        status = collector.status()
        if number in (0, 1, 4, 9) or number % 25 == 24:
            print(
                f"  round {number + 1:3d}: {walls[-1]:5.2f} s, {busy[-1]:5.2f} s of computing, {sizes[-1]:4.0f} MiB, "
                f"{status.groups:,} groups; {status.detail or 'nothing missing'}"
            )
    collector.stop()
    settled = walls[len(walls) // 4 :]
    print(
        f"  settled: median {statistics.median(settled):.2f} s, longest {max(settled):.2f} s: "
        f"{statistics.median(settled) * 1_000 / _INTERVAL_MS:.2f} of the interval; "
        f"computing {statistics.median(busy[len(busy) // 4 :]):.2f} s"
    )
    quarter = len(sizes) // 4
    print(f"  memory: {sizes[quarter]:.0f} MiB after {quarter + 1} rounds, {sizes[-1]:.0f} MiB after {len(sizes)}")


def _used_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
