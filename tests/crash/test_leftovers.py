"""Files left behind by a crash disturb neither readers nor the next start."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import duckdb
import pytest
from deltalake import DeltaTable

from streaming.tables.schema import TABLES
from tests.crash.recording import write_busy_files
from tests.job.commands import CONFIG, ManyRuns, once
from tests.job.table_bags import bags_of, differences

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
_HALF_OF_A_FILE = b"PAR1\x15\x04\x15"
_HALF_OF_A_COMMIT = b'{"commitInfo": {"timestamp": 17'


def test_half_written_files_disturb_neither_readers_nor_the_next_start(runs: ManyRuns, tmp_path: Path) -> None:
    config = tmp_path / "monitor.toml"
    config.write_text(CONFIG)
    write_busy_files(tmp_path / "events", 4)
    undisturbed, disturbed = tmp_path / "undisturbed", tmp_path / "disturbed"
    last = tmp_path / "events/000003.jsonl"
    waiting = last.replace(tmp_path / "waiting")
    assert runs.run(once(tmp_path / "events", disturbed, config)).exit_code == 0
    before = bags_of(disturbed / "tables")
    _leave_behind(disturbed)

    assert bags_of(disturbed / "tables") == before
    for name, rows in before.items():
        by_duckdb = duckdb.from_arrow(DeltaTable(str(disturbed / "tables" / name)).to_pyarrow_dataset())
        assert by_duckdb.aggregate("count(*)").fetchall() == [(rows.total(),)], name
    counts = json.dumps({name: rows.total() for name, rows in before.items()})
    read = runs.call("tests.job.spark_reads:assert_counts", disturbed / "tables", counts)
    assert read.exit_code == 0, read.stderr[-3000:]

    waiting.replace(last)
    ended = runs.run(once(tmp_path / "events", disturbed, config, ["--flush"]))
    assert ended.exit_code == 0, ended.stderr[-3000:]
    assert runs.run(once(tmp_path / "events", undisturbed, config, ["--flush"])).exit_code == 0
    assert differences(bags_of(undisturbed / "tables"), bags_of(disturbed / "tables")) == []


def _leave_behind(place: Path) -> None:
    """Leave the files of a crash in the middle of a write, at each place where something is written."""
    for name in TABLES:
        folder = place / "tables" / name
        version = DeltaTable(str(folder)).version() + 1
        (folder / f"part-00000-{uuid.uuid4()}-c000.zstd.parquet").write_bytes(_HALF_OF_A_FILE)
        (folder / "_change_data").mkdir(exist_ok=True)
        (folder / f"_change_data/cdc-{uuid.uuid4()}.zstd.parquet").write_bytes(_HALF_OF_A_FILE)
        (folder / f"_delta_log/.{version:020d}.{uuid.uuid4()}.tmp").write_bytes(_HALF_OF_A_COMMIT)
        (folder / f"_delta_log/{version - 1:020d}.checkpoint.parquet.tmp").write_bytes(_HALF_OF_A_FILE)
    checkpoint = place / "checkpoint"
    (checkpoint / ".identity.json.tmp").write_bytes(b'{"version":')
    (checkpoint / "control/.000000000001-flush.json.tmp").write_bytes(b'{"control": "fl')
    batch = max(int(file.name) for file in (checkpoint / "query/offsets").glob("[0-9]*"))
    for log in ("offsets", "commits"):
        (checkpoint / f"query/{log}/.{batch + 1}.{uuid.uuid4()}.tmp").write_bytes(b"v1\n{")
    (checkpoint / f"query/state/0/0/.{batch + 2}.changelog.{uuid.uuid4()}.TID1.tmp").write_bytes(b"\x00\x01")
