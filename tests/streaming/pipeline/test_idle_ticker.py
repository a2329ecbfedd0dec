"""Ticks come only where silence counts, only once everything is read, and no more often than needed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from streaming.pipeline import idle_ticker
from streaming.pipeline.idle_ticker import IdleTicker
from streaming.settings.model import load
from streaming.spark.checkpoint import ControlFolder
from tests.kit.own_view import patch_in


class Clocks:
    """The machine's two clocks, moved by the test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.since_start_s, self.now_ms = 100.0, 1_767_225_600_000
        patch_in(monkeypatch, idle_ticker, "time", monotonic=lambda: self.since_start_s)
        monkeypatch.setattr(idle_ticker, "now_ms", lambda: self.now_ms)

    def advance(self, seconds: float) -> None:
        self.since_start_s += seconds
        self.now_ms += round(seconds * 1_000)


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    return Clocks(monkeypatch)


@pytest.fixture
def ticker(clocks: Clocks, tmp_path: Path) -> Callable[..., IdleTicker]:
    def make(silence: str = "expire", interval_ms: int = 0, clusters: tuple[str, ...] = ("b", "a")) -> IdleTicker:
        settings = load(None, {"time.silence": silence, "job.trigger_interval_ms": interval_ms})
        return IdleTicker(settings, ControlFolder(tmp_path), lambda: clusters)

    return make


def ticks(folder: Path) -> list[tuple[str, int]]:
    marks = [json.loads(line) for file in sorted(folder.iterdir()) for line in file.read_text().splitlines()]
    assert all(mark["control"] == "tick" for mark in marks)
    return [(mark["cluster"], mark["time"]) for mark in marks]


def test_a_tick_moves_every_cluster_to_the_machines_time(
    clocks: Clocks, ticker: Callable[..., IdleTicker], tmp_path: Path
) -> None:
    started = ticker()
    clocks.advance(2)
    started.tick_if_due(lambda: True)
    assert sorted(ticks(tmp_path)) == [("a", clocks.now_ms), ("b", clocks.now_ms)]


def test_there_are_no_ticks_if_silence_waits(clocks: Clocks, ticker: Callable[..., IdleTicker], tmp_path: Path) -> None:
    started = ticker(silence="wait")
    clocks.advance(1_000)
    started.tick_if_due(lambda: True)
    assert ticks(tmp_path) == []


@pytest.mark.parametrize(("interval_ms", "pause_s"), [(0, 2), (1_000, 2), (5_000, 5)])
def test_ticks_come_no_more_often_than_batches_nor_than_every_two_seconds(
    interval_ms: int, pause_s: float, clocks: Clocks, ticker: Callable[..., IdleTicker], tmp_path: Path
) -> None:
    started = ticker(interval_ms=interval_ms, clusters=("a",))
    for count in range(3):
        clocks.advance(pause_s - 0.25)
        started.tick_if_due(lambda: True)
        assert len(ticks(tmp_path)) == count
        clocks.advance(0.25)
        started.tick_if_due(lambda: True)
        assert len(ticks(tmp_path)) == count + 1


def test_while_events_wait_time_does_not_pass_over_them(
    clocks: Clocks, ticker: Callable[..., IdleTicker], tmp_path: Path
) -> None:
    started = ticker()
    clocks.advance(10)
    started.tick_if_due(lambda: False)
    assert ticks(tmp_path) == []
    started.tick_if_due(lambda: True)
    assert len(ticks(tmp_path)) == 2


def test_without_clusters_no_mark_is_made(clocks: Clocks, ticker: Callable[..., IdleTicker], tmp_path: Path) -> None:
    started = ticker(clusters=())
    clocks.advance(10)
    started.tick_if_due(lambda: True)
    assert list(tmp_path.iterdir()) == []
