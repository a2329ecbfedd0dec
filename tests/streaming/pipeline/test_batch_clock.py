"""The time that batches took is added up, and reported once."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from streaming.pipeline import batch_clock
from streaming.pipeline.batch_clock import BatchClock
from streaming.tables.commit_notes import WRITING, batch_times_of


def test_added_times_are_drained_once_and_stay_in_the_totals() -> None:
    clock = BatchClock()
    clock.ended(3, {"addBatch": 10, "triggerExecution": 20})
    clock.ended(4, {"addBatch": 30, "triggerExecution": 40})
    times = batch_times_of(clock.drain_note())
    assert times is not None
    assert (times.batches, times.events) == (2, 7)
    assert (times.ms["addBatch"], times.ms["triggerExecution"]) == (40, 60)
    assert clock.drain_note() == ""
    assert clock.totals["triggerExecution"] == 60


def test_writing_belongs_to_the_batch_that_ends_next(monkeypatch: pytest.MonkeyPatch) -> None:
    passed_s = iter((100.0, 100.02))
    monkeypatch.setattr(batch_clock, "time", SimpleNamespace(monotonic=lambda: next(passed_s)))
    clock = BatchClock()
    with clock.writing():
        pass
    written_ms = []
    for _ in range(2):
        clock.ended(1, {})
        times = batch_times_of(clock.drain_note())
        assert times is not None
        written_ms.append(times.ms[WRITING])
    assert written_ms == [20, 0]
    assert clock.totals[WRITING] == 20


def test_each_note_names_the_sources_of_groups() -> None:
    clock = BatchClock()
    clock.sources = {"c": "admin: the settings say so"}
    for _ in range(2):
        clock.ended(1, {})
        times = batch_times_of(clock.drain_note())
        assert times is not None
        assert times.sources == {"c": "admin: the settings say so"}
