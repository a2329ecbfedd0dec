"""What every command does when its output is closed, or the disk is full."""

from __future__ import annotations

import subprocess
import sys

import pytest

_MONITOR = f"{sys.executable} -c 'from streaming.commands import main; main()'"
_ALLOCATE = "allocate --strategy rocketmq.AVG --queues 8 --members 3"


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&-"])
def test_a_closed_stream_is_no_failure(closed: str) -> None:
    done = subprocess.run(f"{_MONITOR} {_ALLOCATE} {closed}", shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_full_disk_is_a_line_and_not_a_traceback() -> None:
    done = subprocess.run(f"{_MONITOR} {_ALLOCATE} >/dev/full", shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
