"""The clock of a machine that is set while a process runs: the time of day jumps, the time since boot does not."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from tests.kit.machine_clock import MachineClock

_PROGRAM = """
import time
from streaming.machine.clock import now_ms
from streaming.machine.process import since_boot_ms
while True:
    time.sleep(0.2)
    print(now_ms(), since_boot_ms(), flush=True)
"""


def test_a_clock_that_is_set_moves_the_time_of_day_alone(tmp_path: Path) -> None:
    clock = MachineClock(tmp_path)
    environment = os.environ | clock.environment
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM], env=environment, stdout=subprocess.PIPE, text=True
    ) as reported:
        try:
            assert reported.stdout is not None
            for ahead_s in (0, 600, -600):
                clock.set(ahead_s)
                ends = time.monotonic() + 30
                while True:
                    wall_ms, boot_ms = map(int, reported.stdout.readline().split())
                    assert abs(boot_ms - time.clock_gettime(time.CLOCK_BOOTTIME) * 1_000) < 5_000
                    if abs(wall_ms - clock.ahead_ms - time.time() * 1_000) < 5_000:
                        break
                    assert time.monotonic() < ends, (ahead_s, wall_ms)
        finally:
            reported.kill()
