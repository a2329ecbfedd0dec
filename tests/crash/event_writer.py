"""A writer of a folder as a process of its own: it counts, acknowledges, and can be killed or live on a full disk."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from streaming.collectors.event_log import EventFiles, LogFull
from streaming.machine import logs
from tests.streaming.collectors.event_log.clocks import clock

_ROOT = Path(__file__).parents[2]


class Writer:
    """The process. Each ``append`` is a number of events; the answer is how many are in the folder, and the trouble.

    Args:
        within: Command that starts the process, and becomes it.
    """

    def __init__(self, folder: Path, within: Sequence[str | Path] = ()) -> None:
        self._process = subprocess.Popen(
            [*map(str, within), sys.executable, "-m", "tests.crash.event_writer", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=_ROOT,
        )
        self.counted = int(self._answer())

    @property
    def pid(self) -> int:
        """Return the process's id."""
        return self._process.pid

    def append(self, count: int) -> str:
        """Let it append, and return its trouble: empty when all is written, ``full`` when nothing was taken."""
        self.request(count)
        return self._answer()

    def request(self, count: int) -> None:
        """Let it append, without waiting."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{count}\n")
        self._process.stdin.flush()

    def kill(self) -> list[str]:
        """Kill it at once; return the events that it had written by then."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.kill()
        answers = self._process.stdout.read().splitlines()
        self._process.wait()
        self._process.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        return answers

    def _answer(self) -> str:
        assert self._process.stdout is not None
        answer = self._process.stdout.readline()
        assert answer, f"the writer ended with {self._process.wait()}"
        return answer.rstrip("\n")


def _write(folder: Path) -> None:
    logs.configure("info", "auto")
    log = EventFiles(folder, "w")
    number = int(log.read_memory() or b"0")
    _answer(str(number))
    for line in sys.stdin:
        count = int(line)
        try:
            log.append([clock(number + step) for step in range(count)])
        except LogFull:
            _answer("full")
            continue
        number += count
        log.keep_memory(str(number).encode())
        _answer(log.trouble() or "")


def _answer(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _write(Path(sys.argv[1]))
