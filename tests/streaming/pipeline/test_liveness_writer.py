"""The job's liveness, as events come, stay away or come late, and at the end of the job."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from streaming.collectors import collector_liveness_writer
from streaming.collectors.collector_liveness_writer import CollectorLivenessWriter
from streaming.machine.clock import now_ms
from streaming.machine.stop_request import StopRequest
from streaming.pipeline import liveness_writer as module
from streaming.pipeline.liveness_writer import LivenessWriter
from streaming.settings.model import load
from streaming.stores.places import Place
from streaming.stores.store_path import StorePath
from streaming.tables.liveness import (
    FOLDER,
    ClusterLiveness,
    JobLiveness,
    SourceStatus,
    collector_place,
    read_collectors,
    read_liveness,
)
from tests.streaming.tables.journals import T0
from udfs.model.journal import ClusterObserved


@dataclass
class Clock:
    """The wall clock, and the time since boot."""

    wall_ms: int = T0
    boot_ms: int = 1_000_000

    def pass_ms(self, span_ms: int) -> None:
        self.wall_ms += span_ms
        self.boot_ms += span_ms


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    fake = Clock()
    monkeypatch.setattr(module, "now_ms", lambda: fake.wall_ms)
    monkeypatch.setattr(module, "since_boot_ms", lambda: fake.boot_ms)
    return fake


def writer(**more: Any) -> LivenessWriter:
    # No thread writes meanwhile: a test calls for each write itself.
    return LivenessWriter(every_ms=3_600_000, unknown_after_ms=30_000, live_within_ms=600_000, **more)


def seen(
    latest_ms: int, *, newest_ms: int | None = None, clock_ms: int | None = None, cluster: str = "c1"
) -> list[ClusterObserved]:
    newest = latest_ms if newest_ms is None else newest_ms
    return [ClusterObserved(cluster=cluster, system="kafka", latest_ms=latest_ms, newest_ms=newest, clock_ms=clock_ms)]


def only(found: JobLiveness) -> ClusterLiveness:
    (cluster,) = found.clusters
    return cluster


def test_a_cluster_is_known_up_to_its_newest_event_and_grows_old_from_when_that_came(clock: Clock) -> None:
    liveness = writer()
    liveness.observed(seen(T0 - 2_000))
    clock.pass_ms(7_000)
    cluster = only(liveness.now())
    assert (cluster.cluster, cluster.system, cluster.known_until, cluster.age_ms) == ("c1", "kafka", T0 - 2_000, 7_000)
    assert (cluster.is_live, cluster.is_followed, cluster.behind_ms) == (True, False, 0)


def test_a_recording_is_not_live_and_is_never_silent(clock: Clock) -> None:
    liveness = writer()
    liveness.observed(seen(T0 - 600_001))
    clock.pass_ms(100_000)
    assert (only(liveness.now()).is_live, liveness.silent()) == (False, {})


def test_while_there_is_more_to_read_the_job_is_behind(clock: Clock) -> None:
    caught_up = [False]
    liveness = writer(is_caught_up=lambda: caught_up[0])
    liveness.observed(seen(T0 - 90_000))
    assert only(liveness.now()).behind_ms == 90_000
    caught_up[0] = True  # a source whose clock is behind
    liveness.observed(seen(T0 - 90_000))
    assert only(liveness.now()).behind_ms == 0


def test_late_events_alone_show_nothing_of_the_present(clock: Clock) -> None:
    liveness = writer()
    liveness.observed(seen(T0, clock_ms=T0 - 2_000))
    clock.pass_ms(10_000)
    liveness.observed(seen(T0 - 40_000, newest_ms=T0, clock_ms=T0 - 2_000))
    assert only(liveness.now()).age_ms == 10_000
    liveness.observed(seen(T0 - 5_000, newest_ms=T0, clock_ms=T0 - 2_000))  # another file, hardly behind
    assert (only(liveness.now()).age_ms, only(liveness.now()).known_until) == (0, T0)


def test_a_silent_cluster_has_the_reason_that_its_collector_reports(clock: Clock) -> None:
    sources = [SourceStatus("c1")]
    liveness = writer(sources=lambda: sources)
    liveness.observed([*seen(T0), *seen(T0, cluster="c2")])
    clock.pass_ms(30_001)
    assert {name: found.reason for name, found in liveness.silent().items()} == {
        "c1": "the cluster does not answer",
        "c2": "no event has come since",
    }
    sources[0] = SourceStatus("c1", problem="the cluster refuses access")
    assert liveness.silent()["c1"] == (T0, "the cluster refuses access")
    assert [found.problem for found in liveness.now().clusters] == ["the cluster refuses access", ""]


def test_what_another_collector_does_not_know_of_a_cluster_is_partial_too(clock: Clock) -> None:
    logs, own = SourceStatus("c1", partial="no log", is_own=False), SourceStatus("c1", partial="no leader")
    sources = [logs, own]
    liveness = writer(sources=lambda: sources)
    liveness.observed(seen(T0))
    assert only(liveness.now()).partial == "no log; no leader"
    assert only(liveness.now()).is_followed
    sources[0] = SourceStatus("c1", problem="its collector was stopped", is_own=False)
    assert (only(liveness.now()).problem, only(liveness.now()).partial) == ("", "no leader")


def test_nothing_grows_old_if_silence_counts_as_evidence(clock: Clock) -> None:
    liveness = writer()
    liveness.observed(seen(T0))
    clock.pass_ms(60_000)
    liveness.touch(["c1", "unheard-of"])
    assert (only(liveness.now()).age_ms, only(liveness.now()).known_until, liveness.silent()) == (0, T0 + 60_000, {})


@pytest.mark.parametrize("set_by_ms", [-3_600_000, 3_600_000])
def test_that_the_clock_was_set_is_noted_and_makes_nothing_older(clock: Clock, set_by_ms: int) -> None:
    liveness = writer()
    liveness.observed(seen(T0))
    clock.pass_ms(1_000)
    clock.wall_ms += set_by_ms
    found = liveness.now()
    assert (found.clock_step_ms, found.clock_step_at) == (set_by_ms, T0 + 1_000 + set_by_ms)
    assert only(found).age_ms == 1_000
    assert liveness.now().clock_step_ms == set_by_ms


def test_a_drifting_clock_was_not_set(clock: Clock) -> None:
    liveness = writer()
    for _ in range(10):
        clock.wall_ms += 500
        assert liveness.now().clock_step_ms == 0


def test_the_next_run_continues_where_the_last_one_ended(clock: Clock, tmp_path: Path) -> None:
    first = writer()
    first.observed(seen(T0))
    first.start(tmp_path, "app")
    first.end("stopped")
    clock.pass_ms(50_000)
    clock.boot_ms = 5  # the machine was started again
    second = writer()
    second.start(tmp_path, "app")
    (job,), problem = read_liveness(tmp_path)
    second.end("stopped")
    assert (job.state, problem) == ("starting", "")
    assert (only(job).is_live, only(job).known_until, only(job).age_ms) == (True, T0, 50_000)


@pytest.mark.parametrize(
    ("is_once", "error", "is_stopped", "state", "reason"),
    [
        (True, None, False, "finished", ""),
        (True, None, True, "stopped", ""),
        (False, None, True, "stopped", ""),
        (False, OSError("no space left"), False, "failed", "no space left"),
        (False, OSError("no space left"), True, "stopped", ""),
    ],
)
def test_the_end_of_the_job_is_written(
    tmp_path: Path, is_once: bool, error: Exception | None, is_stopped: bool, state: str, reason: str
) -> None:
    liveness, stop = writer(), StopRequest()
    liveness.start(tmp_path, "app")
    if is_stopped:
        stop.request()
    with suppress(OSError), liveness.until_end(stop, is_once=is_once), liveness.batch(3):
        if error is not None:
            raise error
    (job,), _ = read_liveness(tmp_path)
    assert (job.state, job.reason, job.batch) == (state, reason, None)


def test_the_running_batch_is_named(clock: Clock) -> None:
    liveness = writer()
    with liveness.batch(7):
        clock.pass_ms(5_000)
        assert (liveness.now().batch, liveness.now().batch_since) == (7, T0)
    assert liveness.now().batch is None


def test_batches_are_prompt_while_neither_the_last_nor_the_running_one_takes_long(clock: Clock) -> None:
    liveness = writer()
    assert liveness.is_prompt()
    for took_ms, is_prompt in ((1_999, True), (2_000, False), (10, True)):
        with liveness.batch(7):
            clock.pass_ms(took_ms)
            assert liveness.is_prompt() is (is_prompt and took_ms != 10)
        assert liveness.is_prompt() is is_prompt


def test_a_folder_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "_liveness").write_text("a file where the folder should be")
    liveness = writer()
    liveness.start(tmp_path, "app")
    liveness.end("stopped")
    assert (tmp_path / "_liveness").is_file()


def test_a_collectors_liveness_gives_the_reason_of_a_silent_cluster(clock: Clock, tmp_path: Path) -> None:
    settings = load(overrides={"events.folder": tmp_path, "job.tables": tmp_path / "tables"}, env={})
    own: list[SourceStatus] = []
    liveness_writer = LivenessWriter.of(settings, is_caught_up=lambda: True, sources=lambda: own)
    liveness_writer.observed(seen(T0))
    assert only(liveness_writer.now()).problem == ""
    file = collector_place(tmp_path, "kafka-c1")
    liveness = CollectorLivenessWriter(
        file, lambda: SourceStatus("c1", "the cluster does not answer", "one of 3 brokers")
    )
    liveness.write_if_due()
    found = only(liveness_writer.now())
    assert (found.problem, found.partial) == ("the cluster does not answer", "one of 3 brokers")
    assert not found.is_followed, "by another process"
    liveness.end(is_once=False)
    clock.pass_ms(30_001)
    assert "its collector was stopped at " in liveness_writer.silent()["c1"].reason
    own.append(SourceStatus("c1", "the cluster refuses access"))
    assert only(liveness_writer.now()).problem == "the cluster refuses access", "the job's own collector knows better"
    own.clear()
    file.write_bytes(b"{")
    assert liveness_writer.silent()["c1"].reason == "no event has come since"


def test_a_sign_is_replaced_when_it_is_old_enough_and_none_is_left_without_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(collector_liveness_writer, "since_boot_ms", lambda: clock.boot_ms)
    asked: list[int] = []

    def status() -> SourceStatus:
        asked.append(clock.boot_ms)
        return SourceStatus("c1")

    CollectorLivenessWriter(None, status).write_if_due()
    assert asked == []
    liveness = CollectorLivenessWriter(collector_place(tmp_path, "kafka-c1"), status)
    for _ in range(3):
        liveness.write_if_due()
    clock.pass_ms(collector_liveness_writer.EVERY_MS)
    liveness.write_if_due()
    assert len(asked) == 2
    assert [collector.state for collector in read_collectors(tmp_path)] == ["running"]
    liveness.end(is_once=True)
    assert [collector.state for collector in read_collectors(tmp_path)] == ["finished"]
    assert [path.name for path in tmp_path.rglob("*.json")] == ["kafka-c1.json"]


_MOST_SHARE, _WRITES, _CLUSTERS = 0.02, 40, 1_000


def test_a_write_costs_little_and_leaves_one_file(either_place: Place) -> None:
    every_ms = load().job.liveness_interval_ms
    # No thread writes meanwhile.
    writer = LivenessWriter(every_ms=3_600_000, unknown_after_ms=30_000, live_within_ms=60_000)
    writer.observed(
        ClusterObserved(cluster=f"c{number}", system="kafka", latest_ms=now_ms(), newest_ms=now_ms(), clock_ms=None)
        for number in range(_CLUSTERS)
    )
    writer.start(either_place.uri if isinstance(either_place, StorePath) else either_place, "app")
    began_s = time.process_time()
    for _ in range(_WRITES):
        writer.write()
    share = (time.process_time() - began_s) / (_WRITES * every_ms / 1_000)
    writer.end("stopped")
    assert share < _MOST_SHARE, f"{share:.2%} of a core"
    files = [file.name for file in (either_place / FOLDER).iterdir() if not file.name.startswith(".")]
    assert files == ["app.json"]
