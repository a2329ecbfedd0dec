"""Bench: a job as its users run it: what it does is read off its files.

A batch's time is from Spark's own entry of its begin in the checkpoint to the file that ends it; a row's is that of
its commit in the log of its table. So both writers and both stores are measured alike.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from streaming.settings.locations import Location

_START = "from streaming.commands import main; main()"
_PATIENCE_S = 1_200
_Found = TypeVar("_Found")


class JobProcess:
    """A running job that reads a folder of events.

    Args:
        process: Its process.
        work: The folder with ``events``, ``checkpoint`` and ``job.log``.
        tables: Where it writes.
    """

    def __init__(self, process: subprocess.Popen[bytes], work: Path, tables: Location) -> None:
        self._process = process
        self._query = work / "checkpoint/query"
        self._log = work / "job.log"
        self._tables = tables
        self.events = work / "events"

    def batch_ms(self, file: str) -> float:
        """Wait until the batch that reads a file has ended; return how long it took, in ms."""
        batch = self._wait(lambda: self._batch_of(file), f"a batch with {file}")
        ends = self._query / f"commits/{batch}"
        self._wait(lambda: True if ends.exists() else None, f"the end of batch {batch}")
        begin = json.loads((self._query / f"offsets/{batch}").read_text().splitlines()[1])["batchTimestampMs"]
        return ends.stat().st_mtime * 1_000 - float(begin)

    def rows(self, name: str) -> int:
        """Return how many rows a table has, by the statistics of its files."""
        try:
            added = pa.table(DeltaTable(self._uri(name)).get_add_actions(flatten=True))
        except TableNotFoundError:
            return 0
        return int(pc.sum(added["num_records"]).as_py() or 0)

    def wait_for_rows(self, expected: Mapping[str, int], meanwhile: Callable[[], object]) -> None:
        """Wait until tables have so many rows."""

        def are_there() -> bool | None:
            meanwhile()
            return True if all(self.rows(name) >= number for name, number in expected.items()) else None

        self._wait(are_there, f"{expected}")

    def last_commit_ms(self, *names: str) -> int:
        """Return when the last of these tables was committed to."""
        return max(int(DeltaTable(self._uri(name)).history(1)[0]["timestamp"]) for name in names)

    def committed_ms(self, name: str, cluster: str) -> dict[str, int]:
        """Return when the first row of each group of a cluster was committed to a table."""
        feed = pa.table(DeltaTable(self._uri(name)).load_cdf(starting_version=0, predicate=f"cluster = '{cluster}'"))
        times = feed["_commit_timestamp"].cast(pa.timestamp("ms")).cast(pa.int64())
        found: dict[str, int] = {}
        for group, at in zip(feed["group_id"].to_pylist(), times.to_pylist(), strict=True):
            found[group] = min(at, found.get(group, at))
        return found

    def _uri(self, name: str) -> str:
        return f"{self._tables}/{name}"

    def _batch_of(self, file: str) -> int | None:
        """Return the number of the batch that reads a file; None: no batch has read it yet."""
        for log in self._query.glob("sources/*/*"):
            if log.name.startswith("."):
                continue
            for line in log.read_text().splitlines()[1:]:
                entry = json.loads(line)
                if entry["path"].endswith(f"/{file}"):
                    return self._first_with(int(log.parent.name), int(entry["batchId"]))
        return None

    def _first_with(self, source: int, offset: int) -> int | None:
        for batch in sorted(int(each.name) for each in (self._query / "offsets").iterdir() if each.name.isdigit()):
            reached = (self._query / f"offsets/{batch}").read_text().splitlines()[2 + source]
            if reached != "-" and json.loads(reached)["logOffset"] >= offset:
                return batch
        return None

    def _wait(self, read: Callable[[], _Found | None], what: str) -> _Found:
        ends = time.monotonic() + _PATIENCE_S
        while (found := read()) is None:
            if self._process.poll() is not None:
                raise RuntimeError(f"the job ended before {what}: {self._log.read_text()[-3_000:]}")
            if time.monotonic() > ends:
                raise TimeoutError(f"no {what} after {_PATIENCE_S} s")
            time.sleep(0.02)
        return found


@contextmanager
def running_job(work: Path, tables: Location, settings: str) -> Iterator[JobProcess]:
    """Run a job until the block is left.

    Args:
        work: An empty folder for all of its files.
        tables: Where it writes.
        settings: Its settings file.
    """
    (work / "events").mkdir(parents=True)
    (work / "job.toml").write_text(settings)
    command = [sys.executable, "-c", _START, "run", "--events", "events", "--tables", str(tables)]
    with (work / "job.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--checkpoint", "checkpoint", "--config", "job.toml"],
            cwd=work,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1]), "PYTHONSAFEPATH": "1"},
            stdout=log,
            stderr=log,
        )
        try:
            yield JobProcess(process, work, tables)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
