"""The job without Spark: the order of its reads, its end, and its restarts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from streaming import job as job_module
from streaming.job import Job
from streaming.settings.model import load

AWAY = "org.apache.kafka.common.errors.DisconnectException"


class FakeQuery:
    """A query that runs until it fails or is stopped; without batches none of its batches is running."""

    def __init__(self, error: Exception | None = None, batches: Sequence[int] = ()) -> None:
        self.isActive = True
        self.error = error
        self.batches = list(batches)
        self.is_stopped = False
        self.refusal: Exception | None = None

    @property
    def status(self) -> dict[str, bool]:
        return {"isTriggerActive": bool(self.batches)}

    @property
    def lastProgress(self) -> dict[str, int] | None:  # noqa: N802 - as Spark names it
        if not self.batches:
            return None
        return {"batchId": self.batches.pop(0) if len(self.batches) > 1 else self.batches[0]}

    def exception(self) -> Exception | None:
        return self.error

    def stop(self) -> None:
        self.isActive = False
        self.is_stopped = True
        if self.refusal is not None:
            raise self.refusal


class Losses:
    """No records are lost, unless the test passes over some."""

    passed: Exception | None = None
    starts_again = False

    def step(self, *, progressed: bool) -> Exception | None:
        passed, self.passed = self.passed, None
        return passed

    def may_start_again(self, error: Exception) -> bool:
        again, self.starts_again = self.starts_again, False
        return again


class FakeAttachedCluster:
    """A live cluster beside the job."""

    def __init__(self) -> None:
        self.started = 0
        self.answers = True
        self.problem: str | None = None

    def start(self) -> None:
        self.started += 1

    def status(self) -> str | None:
        return self.problem

    def connection_error(self, error: BaseException) -> str | None:
        return AWAY if AWAY in str(error) else None

    def poll(self) -> bool:
        return self.answers

    def flush_clock(self) -> bool:
        return True


class Materializer:
    def run_if_due(self) -> None:
        pass


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    made = Job(load(None, {"job.checkpoint": tmp_path / "c", "job.tables": tmp_path / "t"}))
    monkeypatch.setattr(made._watch, "progress", lambda _query: None)
    monkeypatch.setattr(job_module, "_POLL_EVERY_S", 0.0)
    monkeypatch.setattr(job_module, "_RESTART_AFTER_S", (0.0, 0.0))
    monkeypatch.setattr(job_module, "caught_up", lambda _query: True)
    return made


def follow(
    job: Job, queries: list[FakeQuery], followers: Sequence[FakeAttachedCluster] = (), losses: Any = None
) -> int:
    """Follow until the last of these queries has been started and stopped; return how many were started."""
    started = 0

    def start(_once: bool) -> FakeQuery:
        nonlocal started
        started += 1
        if started == len(queries):
            job.stop.request()
        query = queries[started - 1]
        query.isActive = query.error is None
        return query

    job._follow(start, followers, losses or Losses(), Materializer())  # type: ignore[arg-type]
    return started


def test_a_query_that_a_broker_ended_is_started_again_and_its_collectors_run_on(job: Job) -> None:
    cluster = FakeAttachedCluster()
    queries = [FakeQuery(RuntimeError(AWAY)), FakeQuery(RuntimeError(AWAY)), FakeQuery()]
    with capture_logs() as logged:
        assert follow(job, queries, [cluster]) == 3
    assert cluster.started == 1
    assert [line["reason"] for line in logged if "restarts" in line["event"]] == [AWAY] * 2
    assert queries[-1].is_stopped


def test_any_other_failure_ends_the_job(job: Job) -> None:
    with pytest.raises(RuntimeError, match="a defect"):
        follow(job, [FakeQuery(RuntimeError("a defect")), FakeQuery()], [FakeAttachedCluster()])


def test_a_query_that_ends_without_a_reason_is_a_failure(job: Job) -> None:
    query = FakeQuery()
    query.isActive = False
    with pytest.raises(RuntimeError, match="ended unexpectedly"):
        job._follow(lambda _once: query, [], Losses(), Materializer())  # type: ignore[arg-type,return-value]


def test_deleted_records_start_the_query_again_at_once(job: Job) -> None:
    losses = Losses()
    losses.starts_again = True
    assert follow(job, [FakeQuery(RuntimeError("records were deleted")), FakeQuery()], losses=losses) == 2


def test_the_state_names_the_clusters_with_a_problem(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    well, away = FakeAttachedCluster(), FakeAttachedCluster()
    away.problem = "orders away"
    states: list[str] = []

    def wait(_seconds: float) -> bool:
        states.append(job.status.state)
        return len(states) > 2

    monkeypatch.setattr(job.stop, "wait", wait)
    query, ticker = FakeQuery(), Materializer()
    ticker.tick_if_due = lambda _caught_up: ()  # type: ignore[attr-defined]
    assert job._watch_over(query, [well, away], Losses(), Materializer(), ticker) is None  # type: ignore[arg-type]
    assert states == ["running", "orders away", "orders away"]


def test_the_first_batch_is_announced_once(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    job.when_running(lambda: calls.append("running"))
    waits = iter([False, False, False, True])
    monkeypatch.setattr(job.stop, "wait", lambda _seconds: next(waits))
    progress = iter([False, True, True, True])
    monkeypatch.setattr(job._watch, "progress", lambda _query: setattr(job._watch, "progressed", next(progress)))
    ticker = Materializer()
    ticker.tick_if_due = lambda _caught_up: ()  # type: ignore[attr-defined]
    job._watch_over(FakeQuery(), [], Losses(), Materializer(), ticker)  # type: ignore[arg-type]
    assert calls == ["running"]


def test_a_stop_lets_the_running_batch_end_though_another_follows_at_once(job: Job) -> None:
    query = FakeQuery(batches=[7, 7, 7, 8, 8])
    with capture_logs() as logged:
        job._stop_query(query)  # type: ignore[arg-type]
    assert query.is_stopped
    assert query.batches == [8]
    assert logged == []


@pytest.mark.parametrize("stop_timeout_ms", [0, 3_600_000])
def test_a_batch_is_interrupted_after_its_time_or_when_that_is_urgent(tmp_path: Path, stop_timeout_ms: int) -> None:
    job = Job(load(None, {"job.checkpoint": tmp_path, "job.stop_timeout_ms": stop_timeout_ms}))
    job._watch.progress = lambda _query: None  # type: ignore[method-assign,assignment]
    if stop_timeout_ms:
        job.stop.request()
        job.stop.request()
    query = FakeQuery(batches=[7])
    with capture_logs() as logged:
        job._stop_query(query)  # type: ignore[arg-type]
    assert query.is_stopped
    assert [line["event"] for line in logged] == ["the batch was interrupted; it is repeated at the next start"]


def drain(
    job: Job, monkeypatch: pytest.MonkeyPatch, followers: Sequence[FakeAttachedCluster], *, flush: bool
) -> list[str]:
    """Read once; return the passes and the marks in their order."""
    steps: list[str] = []

    def read_through(_start: object, _losses: object) -> None:
        steps.append("pass")

    monkeypatch.setattr(job, "_read_through", read_through)
    monkeypatch.setattr(job_module, "clusters_of", lambda *_: ["b", "a"])
    mark = job_module.ControlFolder.mark
    monkeypatch.setattr(
        job_module.ControlFolder, "mark", lambda _self, kind, marks: steps.append(f"{kind} {sorted(marks)}")
    )
    assert mark is not None
    job._drain(None, lambda _once: None, followers, Losses(), flush=flush)  # type: ignore[arg-type,return-value]
    return steps


def test_a_job_that_reads_once_reads_again_for_clocks_and_for_the_flush(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert drain(job, monkeypatch, [], flush=False) == ["pass"]
    assert drain(job, monkeypatch, [FakeAttachedCluster()], flush=False) == ["pass", "pass"]
    assert drain(job, monkeypatch, [], flush=True) == ["pass", "flush ['a', 'b']", "pass"]


def test_a_cluster_that_does_not_answer_is_logged_and_the_rest_is_read(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = FakeAttachedCluster()
    away.answers, away.problem = False, "orders away"
    with capture_logs() as logged:
        assert drain(job, monkeypatch, [away], flush=False)[0] == "pass"
    assert [line["cluster"] for line in logged] == ["orders away"]


def test_groups_with_more_work_than_fits_into_a_batch_get_another_pass(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    resume, passes = job._resumer(), []

    def read_through(_start: object, _losses: object) -> None:
        passes.append(1)
        if len(passes) < 3:
            resume(["c1"])

    job._checkpoint.control.mkdir(parents=True)
    monkeypatch.setattr(job, "_read_through", read_through)
    job._pass(lambda _once: None, Losses())  # type: ignore[arg-type,return-value]
    assert len(passes) == 3
    marks = [file.read_text() for file in sorted(job._checkpoint.control.iterdir())]
    assert ["resume" in mark and "c1" in mark for mark in marks] == [True, True]


@pytest.mark.parametrize("writer", ["delta-rs", "delta-spark"])
def test_executors_must_see_the_folders_that_they_read_and_write(
    writer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class StartedError(Exception):
        pass

    def start_session(_settings: Any, *, shared: Sequence[Path], **_: Any) -> None:
        assert [folder for folder in shared if not folder.is_dir()] == []
        raise StartedError(*(folder.name for folder in shared))

    (tmp_path / "events").mkdir()
    monkeypatch.setattr(job_module, "start_session", start_session)
    places = {f"job.{name}": tmp_path / name for name in ("checkpoint", "tables")}
    settings = load(None, {**places, "events.folder": tmp_path / "events", "tables.writer": writer})
    with pytest.raises(StartedError) as started:
        Job(settings).run(once=True)
    written = ["tables"] if writer == "delta-spark" else []
    assert list(started.value.args) == ["checkpoint", "events", *written]
