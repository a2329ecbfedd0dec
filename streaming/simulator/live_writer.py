"""Shell: a simulated fleet in real time, whose events are written as they happen."""

from __future__ import annotations

import threading
from pathlib import Path
from types import TracebackType

from streaming.machine.atomic_file import write_atomically
from streaming.machine.clock import now_ms
from streaming.machine.logs import logger
from streaming.simulator.fleet import Fleet
from streaming.simulator.serializer import line
from streaming.simulator.truth import truth_lines

WRITE_INTERVAL_S = 1.0
# An hour of files is kept, much more than a running reader is behind.
KEPT_FILES = 3_600


class LiveWriter:
    """Writes a fleet's events into a folder while they happen, one file per interval, closed by rename.

    Args:
        fleet: Its ``start_ms`` is about now (see ``now_ms``).
        truth_file: The file for the expected results, outside of the folder; None to write none.
    """

    def __init__(self, fleet: Fleet, folder: Path, truth_file: Path | None = None) -> None:
        self.events = 0
        self._fleet = fleet
        self._folder = folder
        self._truth_file = truth_file
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="simulator", daemon=True)
        self._written: list[Path] = []
        self.failure: Exception | None = None

    def start(self) -> LiveWriter:
        """Start writing, in its own thread."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """Write the events so far, and stop."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def __enter__(self) -> LiveWriter:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def write_until(self, time_ms: int) -> None:
        """Write everything that reaches a reader up to then, as one file."""
        text = b"".join(map(line, self._fleet.deliveries_until(time_ms)))
        if text:
            self.events += text.count(b"\n")
            self._written.append(self._folder / f"{time_ms:015d}.jsonl")
            write_atomically(self._written[-1], text)
        truth = self._fleet.drain_truth()
        if self._truth_file is not None and truth:
            with self._truth_file.open("ab") as file:
                file.write(truth_lines(truth))
        while len(self._written) > KEPT_FILES:
            self._written.pop(0).unlink(missing_ok=True)

    def _run(self) -> None:
        try:
            while not self._stop.wait(WRITE_INTERVAL_S):
                self.write_until(now_ms())
            self.write_until(now_ms())
        except OSError as error:
            self.failure = error
            logger("simulator").error("the simulated fleet can no longer be written", reason=str(error))
