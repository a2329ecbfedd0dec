"""Bench: the hand-made writer of the release before, out of this repository's history, in a process of its own.

Its packages have the names of ours, so it cannot be imported beside them. The process runs what it reads line by
line (`former_writer.py`) and returns how long that took; so both sides alternate in one run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

# The last commit with a log writer of our own.
COMMIT = "a863199ba1b920cac9935ca5ec8f5fce54849999"
_HERE = Path(__file__).parent


class FormerRelease:
    """The running process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ms(self, command: str, *arguments: object) -> float:
        """Run a command of `former_writer.py`; return how long it took, in ms."""
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the process has no pipes")
        self._process.stdin.write(json.dumps([command, *arguments], default=str) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the release before failed at {command}")
        return float(line)


@contextmanager
def former_code() -> Iterator[Path]:
    """Unpack its packages into a folder until the block is left.

    Raises:
        subprocess.CalledProcessError: This folder has no history with that commit.
    """
    command = ["git", "-C", str(_HERE.parent), "archive", COMMIT, "streaming", "udfs", "conf"]
    archive = subprocess.run(command, check=True, capture_output=True).stdout
    with tempfile.TemporaryDirectory(prefix="former-release-") as folder:
        with tarfile.open(fileobj=BytesIO(archive)) as packed:
            packed.extractall(folder, filter="data")
        yield Path(folder)


@contextmanager
def former_release() -> Iterator[FormerRelease]:
    """Run it until the block is left.

    Raises:
        subprocess.CalledProcessError: This folder has no history with that commit.
    """
    with former_code() as folder:
        process = subprocess.Popen(
            [sys.executable, str(_HERE / "former_writer.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(folder), "PYTHONSAFEPATH": "1"},
        )
        try:
            yield FormerRelease(process)
        finally:
            process.kill()
            process.wait()
