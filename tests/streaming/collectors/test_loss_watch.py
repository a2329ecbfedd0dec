"""The query passes over lost records in some cases, and fails in others."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.collectors import loss_watch
from streaming.collectors.kafka.topic_reader import DATA_LOSS
from streaming.collectors.loss_watch import LossWatch, PassedOver
from streaming.settings.model import load
from streaming.spark.checkpoint import Checkpoint


class Topic:
    """A topic that may have lost records."""

    behind = False

    def is_behind(self) -> bool:
        return self.behind


@pytest.fixture
def topics(monkeypatch: pytest.MonkeyPatch) -> list[Topic]:
    made = [Topic(), Topic()]
    monkeypatch.setattr(loss_watch, "_topic_readers", lambda *_: made)
    return made


@pytest.fixture
def watch(topics: list[Topic], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LossWatch:
    monkeypatch.setattr(loss_watch, "_POLL_EVERY_S", 0.0)
    checkpoint = Checkpoint(tmp_path)
    identity = checkpoint.open(shards=1, shuffle_partitions=1, sources=["control"])
    return LossWatch(load(), checkpoint, identity, list)


def test_a_query_is_tolerant_only_until_it_has_skipped_what_is_missing(watch: LossWatch, topics: list[Topic]) -> None:
    assert not watch.before_start()
    assert watch.step(progressed=True) is None
    topics[1].behind = True
    assert watch.before_start()
    assert watch.step(progressed=True) is None
    topics[1].behind = False
    assert watch.step(progressed=False) is None
    passed = watch.step(progressed=True)
    assert isinstance(passed, PassedOver)
    assert watch.may_start_again(passed)
    assert not watch.before_start()


def test_a_failure_for_deleted_records_starts_the_query_again_and_once_only(watch: LossWatch) -> None:
    assert not watch.before_start()
    assert not watch.may_start_again(RuntimeError("something else"))
    assert watch.may_start_again(RuntimeError(f"[STREAM_FAILED] {DATA_LOSS}; either ..."))
    # This also holds if nothing is missing: otherwise the query would fail again and again.
    assert watch.before_start()
    assert not watch.may_start_again(RuntimeError(DATA_LOSS))
    assert not watch.before_start()
