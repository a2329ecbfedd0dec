"""Losses on their way to the query: each of them arrives, and a crash forgets none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from streaming.pipeline.pending_losses import PendingLosses
from streaming.spark.checkpoint import CheckpointError, ControlFolder
from udfs.model.losses import Loss

LOSS = Loss(what="Files were deleted", since_ms=1_000, until_ms=2_000, noticed_ms=3_000)


class FullDisk(ControlFolder):
    def mark(self, kind: str, clusters: Mapping[str, Mapping[str, object]]) -> None:
        raise OSError(28, "No space left on device")


def marks(folder: Path) -> list[object]:
    return [json.loads(line) for file in sorted(folder.glob("*-lost.json")) for line in file.read_text().splitlines()]


def test_a_loss_is_a_mark_that_the_query_reads_and_is_remembered(tmp_path: Path) -> None:
    losses = PendingLosses(tmp_path / "losses.json", ControlFolder(tmp_path))
    assert losses.answered("events:/a") is None
    losses.report("events:/a", {"kafka": 7}, [("c1", LOSS)])
    wanted = {"what": "Files were deleted", "since_ms": 1_000, "until_ms": 2_000, "noticed_ms": 3_000}
    assert marks(tmp_path) == [{"control": "lost", "cluster": "c1", "lost": wanted}]
    again = PendingLosses(tmp_path / "losses.json", ControlFolder(tmp_path))
    assert again.answered("events:/a") == {"kafka": 7}
    assert len(marks(tmp_path)) == 1


def test_a_mark_that_a_crash_kept_from_the_control_folder_is_written_at_the_next_start(tmp_path: Path) -> None:
    losses = PendingLosses(tmp_path / "losses.json", FullDisk(tmp_path))
    with pytest.raises(OSError, match="No space"):
        losses.report("events:/a", {"kafka": 7}, [("c1", LOSS), ("c2", LOSS)])
    PendingLosses(tmp_path / "losses.json", ControlFolder(tmp_path))
    assert [mark["cluster"] for mark in marks(tmp_path)] == ["c1", "c2"]
    PendingLosses(tmp_path / "losses.json", ControlFolder(tmp_path))
    assert len(marks(tmp_path)) == 2


def test_a_damaged_memory_is_refused_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "losses.json").write_text("{")
    with pytest.raises(CheckpointError, match="Delete it"):
        PendingLosses(tmp_path / "losses.json", ControlFolder(tmp_path))
