"""Every collector as the job sees it: its state in a few words, its thread, and its log."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from streaming.collectors.collector import CollectorCluster, CollectorStatus, CollectorThread
from streaming.collectors.event_log import EventFiles
from tests.streaming.collectors.event_log.clocks import clock, times_in


class ScriptedCollector:
    """Writes one event at each poll."""

    def __init__(self, log: EventFiles) -> None:
        self._log = log
        self.current = CollectorStatus(cluster="orders", state="connected")

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def observe_once(self) -> bool:
        self._log.append([clock(1)])
        return True

    def status(self) -> CollectorStatus:
        return self.current


def test_the_problem_of_a_cluster_is_a_short_text(tmp_path: Path) -> None:
    log = EventFiles(tmp_path, "rocketmq")
    collector = ScriptedCollector(log)
    cluster = CollectorCluster(collector, log)
    assert cluster.poll()
    assert times_in(tmp_path) == [1]
    assert not cluster.flush_clock()
    assert cluster.status() is None
    for change, text in (
        ({"state": "away"}, "orders away"),
        ({"state": "refused"}, "orders refused"),
        ({"unpolled": 7}, "orders: 7 not polled in time"),
    ):
        collector.current = msgspec.structs.replace(CollectorStatus(cluster="orders", state="connected"), **change)
        assert cluster.status() == text


def test_a_log_that_cannot_be_written_is_the_collectors_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = EventFiles(tmp_path, "rocketmq")
    cluster = CollectorCluster(ScriptedCollector(log), log)

    def full(path: Path, content: bytes, **more: int | None) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("streaming.collectors.event_log.event_files.write_whole", full)
        cluster.poll()
        assert cluster.status() == "orders unwritable"
        assert cluster.collector_status().detail == "[Errno 28] No space left on device"
    cluster.stop()
    assert cluster.status() is None
    assert times_in(tmp_path) == [1]


class CountingThread(CollectorThread):
    """Runs until it is stopped."""

    ran = False

    def stop(self) -> None:
        self._stopping.set()
        assert self._joined(60)

    def _run(self) -> None:
        self._stopping.wait(60)
        self.ran = True


def test_a_thread_runs_within_its_block_and_has_ended_after_it() -> None:
    with CountingThread("counting") as running:
        assert not running.ran
        assert not running._joined(0)
    assert running.ran


def test_a_thread_that_was_never_started_has_ended() -> None:
    never = CountingThread("never")
    never.stop()
    assert not never.ran
