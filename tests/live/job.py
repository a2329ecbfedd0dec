"""The monitor itself beside a real broker, and what it wrote."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from tests.job.commands import CONFIG, ManyRuns
from tests.kit.brokers import Broker
from tests.live.tables import Row, rows_of
from udfs.model.comparability import TOPICS_UNKNOWN

# Generous: the machine may be busy with other things.
_WAIT_S = 500.0
CLUSTER = "live"
# By default a batch begins more often, and each takes computing from the cluster and its members.
_SELDOM = {"REBALANCE_MONITOR_JOB__TRIGGER_INTERVAL_MS": "2000"}
# The same in a file, with tables that follow at once.
SELDOM = CONFIG.replace("trigger_interval_ms = 200", "trigger_interval_ms = 2000")


class RunningJob:
    """`rebalance-monitor run`, and its tables.

    Args:
        runs: The process in which it runs.
    """

    def __init__(self, runs: ManyRuns, tables: Path) -> None:
        self.tables = tables
        self._runs = runs

    def stderr(self) -> str:
        """Return all that it wrote to its standard error."""
        return self._runs.stderr()

    def rows(self, table: str) -> list[Row]:
        """Return a table as it is now; nothing while it is not there."""
        return rows_of(self.tables, table)

    def generations(self, group: str) -> dict[int, Row]:
        """Return a group's rebalances by generation; two rows for one generation are an error."""
        found = [row for row in self.rows("rebalances") if row["group_id"] == group]
        by_generation = {row["generation"]: row for row in found}
        assert len(by_generation) == len(found), [row["generation"] for row in found]
        return by_generation

    def agrees(self, row: Row) -> bool:
        """Return whether a rebalance is as recomputed: by its row, or by its audit where metadata came later.

        Of a generation that the next one followed before metadata came nothing is known.
        """
        if row["agrees_reason"] != TOPICS_UNKNOWN:
            return row["agrees"] is True
        audits = [audit for audit in self.rows("audits") if audit["rebalance_id"] == row["rebalance_id"]]
        return [(audit["verdict"], audit["reason"]) for audit in audits] in (
            [("agrees", None)],
            [("not_recomputable", TOPICS_UNKNOWN)],
        )

    def wait_for(self, claim: Callable[[], bool], what: str) -> None:
        """Return as soon as a claim about the job or its tables holds."""
        self._runs.wait_until(claim, what, _WAIT_S)

    def wait_for_generation(self, group: str, generation: int) -> None:
        """Return as soon as a group's generation is in the tables."""
        self.wait_for(lambda: generation in self.generations(group), f"generation {generation} of {group}")

    def stop(self) -> int:
        """Request it to stop, and return its exit code."""
        self._runs.signal(signal.SIGTERM)
        return self._runs.wait().exit_code


@contextlib.contextmanager
def running_job(
    runs: ManyRuns,
    broker: Broker,
    folder: Path,
    *,
    user: str | None = None,
    more: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
) -> Iterator[RunningJob]:
    """Follow a Kafka broker until the block is left; it is up when it has read the broker's topics."""
    source = ["--kafka", broker.bootstrap, *_options(broker.java_settings(user))]
    with job_that_follows(runs, source, folder, more=more, settings=settings) as job:
        yield job


@contextlib.contextmanager
def job_that_follows(
    runs: ManyRuns,
    source: Sequence[str],
    folder: Path,
    *,
    more: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
) -> Iterator[RunningJob]:
    """Follow a cluster until the block is left.

    Args:
        source: The options that name it. more: Other options.
        settings: As environment variables.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tables = folder / "tables"
    command = ["run", *source, "--cluster", CLUSTER]
    command += ["--tables", str(tables), "--checkpoint", str(folder / "checkpoint"), *more]
    job = RunningJob(runs, tables)
    runs.start(command, environment={**_SELDOM, **(settings or {})})
    try:
        job.wait_for(lambda: '"batch"' in job.stderr(), "the first batch")
        yield job
    finally:
        runs.kill()


def _options(settings: Mapping[str, str]) -> list[str]:
    return [
        part
        for key, value in settings.items()
        if key != "bootstrap.servers"
        for part in ("--kafka-option", f"{key}={value}")
    ]
