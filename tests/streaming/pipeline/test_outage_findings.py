"""A silent cluster has one finding in the tables while it lasts, also across restarts and beside the core's."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.pipeline import outage_findings as module
from streaming.pipeline.outage_findings import OutageFindings, SilentCluster
from streaming.tables.engine import DeltaRsEngine
from streaming.tables.materializer import Materializer
from streaming.tables.schema import CHANGES, Row
from streaming.views.reader import Reader
from tests.streaming.tables.journals import T0
from udfs.shard.source_gaps import finding_id

AFTER_MS = 30_000
SILENT = {"c1": SilentCluster(T0, "the cluster does not answer")}


@pytest.fixture
def boot_ms(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The time since boot, which a test moves on."""
    time = [1_000_000]
    monkeypatch.setattr(module, "since_boot_ms", lambda: time[0])
    return time


def outages(root: Path) -> OutageFindings:
    DeltaRsEngine().table(root, CHANGES)
    return OutageFindings(DeltaRsEngine(), root, root, "app", after_ms=AFTER_MS, lateness_ms=2_000)


def findings(root: Path) -> list[Row]:
    Materializer(root, 0).run()
    return Reader(root).rows("findings")


def test_a_finding_is_open_while_nothing_comes_and_closes_afterwards(tmp_path: Path, boot_ms: list[int]) -> None:
    silences = outages(tmp_path)
    assert silences.step(SILENT, {"c1": T0})
    assert not silences.step(SILENT, {"c1": T0})
    (row,) = findings(tmp_path)
    assert (row["finding_id"], row["opened_at"], row["closed_at"]) == (
        finding_id("c1", T0 + AFTER_MS),
        T0 + AFTER_MS,
        None,
    )
    assert row["message"].startswith(
        "Nothing is known of cluster c1 since 2026-01-01T00:00:00.000Z: the cluster does not answer."
    )
    assert not silences.step({}, {"c1": T0 + 90_000})  # the core has yet to report it itself
    boot_ms[0] += 10_001
    assert silences.step({}, {"c1": T0 + 100_000})
    (row,) = findings(tmp_path)
    assert (row["closed_at"], "does not answer" in row["message"]) == (T0 + 90_000, True)
    assert not silences.step({}, {"c1": T0 + 110_000})


def test_one_that_falls_silent_again_before_that_stays_open(tmp_path: Path, boot_ms: list[int]) -> None:
    silences = outages(tmp_path)
    silences.step(SILENT, {"c1": T0})
    silences.step({}, {"c1": T0 + 90_000})
    boot_ms[0] += 10_001
    assert not silences.step(SILENT, {"c1": T0 + 90_000})
    assert [row["closed_at"] for row in findings(tmp_path)] == [None]


def test_a_job_that_starts_meanwhile_takes_the_open_finding_over(tmp_path: Path, boot_ms: list[int]) -> None:
    outages(tmp_path).step(SILENT, {"c1": T0})
    assert len(findings(tmp_path)) == 1
    second = outages(tmp_path)
    assert not second.step({"c1": SilentCluster(T0 - 5, "the job was away")}, {"c1": T0})
    second.step({}, {"c1": T0 + 90_000})
    boot_ms[0] += 10_001
    assert second.step({}, {"c1": T0 + 90_000})
    assert [row["closed_at"] for row in findings(tmp_path)] == [T0 + 90_000]
