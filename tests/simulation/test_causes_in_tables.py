"""The whole job on a recording: the tables show what the fleet's script did."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from streaming.simulator import Fleet, record
from streaming.simulator.truth import read_truth
from tests.job.commands import ManyRuns
from tests.simulation.check import check


@pytest.mark.spark
@pytest.mark.parametrize("seed", [31, 32])
def test_the_tables_hold_every_rebalance_of_a_recording_with_its_causes(
    seed: int, runs: ManyRuns, tmp_path: Path
) -> None:
    """Read in batches of a minute, so that scripted late events come late; then flushed."""
    record(Fleet(seed, groups=15, members=70, speed=2.0), tmp_path, 240_000)
    ended = runs.run(
        [
            "run",
            *("--events", tmp_path / "events"),
            *("--tables", tmp_path / "tables"),
            *("--checkpoint", tmp_path / "checkpoint"),
            *("--once", "--flush"),
            *("--max-files-per-batch", "12"),
            *("--shards", "3"),
        ]
    )
    assert ended.exit_code == 0, ended.stderr[-3_000:]
    rows = pa.table(DeltaTable(str(tmp_path / "tables" / "rebalances")).scan()).to_pylist()
    verdict = check(rows, read_truth((tmp_path / "truth.jsonl").read_bytes()))
    assert verdict.holds, verdict.report()
    assert verdict.right > 100
