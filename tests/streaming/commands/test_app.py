"""Every command with a closed output, a full disk, or damaged tables."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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


@pytest.mark.parametrize("command", ["show rebalances", "explain x", "query most-rebalances", "optimize"])
def test_damaged_tables_are_a_line_and_not_a_traceback(command: str, tmp_path: Path) -> None:
    log = tmp_path / "rebalances/_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020d}.json").write_text("{damaged")
    done = subprocess.run(
        f"{_MONITOR} {command} --tables {tmp_path}", shell=True, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: the tables cannot be used: ")
    assert done.stderr.count("\n") == 1


def test_the_list_of_commands_loads_nothing_heavy() -> None:
    heavy = ("deltalake", "duckdb", "pyarrow", "pydantic", "pyspark", "rich", "structlog")
    script = f"import sys, streaming.commands.app; print([one for one in {heavy} if one in sys.modules])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "[]\n"
