"""Taking the last batch of a checkpoint back, on folders as Spark leaves them; the states are given."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streaming.spark import rollback
from streaming.spark.checkpoint import Checkpoint, CheckpointError
from streaming.spark.rollback import read_whole, roll_back
from streaming.spark.state_reader import StoredShard
from udfs.shard.state_format import Header, pack_state

WHOLE = pack_state(Header(clock=5), {})
DAMAGED = WHOLE[:-1] + b"x"


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    """Three batches have ended and a fourth has begun; each read one file, and a source that is not a folder."""
    query = tmp_path / "checkpoint/query"
    (tmp_path / "my events").mkdir()
    for folder in ("offsets", "commits", "sources/0"):
        (query / folder).mkdir(parents=True)
    for batch in range(4):
        file = tmp_path / f"my events/{batch}.jsonl"
        file.write_text("{}\n")
        path = f"file://{str(file).replace(' ', '%20')}"
        entry = json.dumps({"path": path, "timestamp": 1, "batchId": batch})
        (query / f"sources/0/{batch}").write_text(f"v1\n{entry}")
        offset = json.dumps({"logOffset": batch})
        (query / f"offsets/{batch}").write_text(f'v1\n{{"batchWatermarkMs":0}}\n{offset}\n-\n{{"topic":{{"0":7}}}}')
        (query / f"offsets/.{batch}.crc").write_text("")
        if batch < 3:
            (query / f"commits/{batch}").write_text("v1\n{}")
            (query / f"commits/.{batch}.crc").write_text("")
    return Checkpoint(tmp_path / "checkpoint")


def states(monkeypatch: pytest.MonkeyPatch, *by_batch: bytes) -> None:
    def read_shards(spark: object, query: Path, batch_id: int | None = None) -> list[StoredShard]:
        data = by_batch[-1 if batch_id is None else batch_id]
        return [StoredShard("c1", 0, WHOLE), StoredShard("c1", 3, data)]

    monkeypatch.setattr(rollback, "read_shards", read_shards)


def left(checkpoint: Checkpoint, folder: str) -> list[str]:
    return sorted(file.name for file in (checkpoint.query / folder).iterdir())


def test_the_last_batch_and_the_one_begun_after_it_are_rolled_back(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    states(monkeypatch, WHOLE, WHOLE, DAMAGED)
    assert roll_back(None, checkpoint) == 2  # type: ignore[arg-type]
    assert left(checkpoint, "commits") == [".0.crc", ".1.crc", "0", "1"]
    assert left(checkpoint, "offsets") == [".0.crc", ".1.crc", ".2.crc", "0", "1", "2"]
    assert left(checkpoint, "sources/0") == ["0", "1", "2", "3"]


def test_a_whole_state_is_left_as_it_is(checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    states(monkeypatch, WHOLE, DAMAGED, WHOLE)
    with pytest.raises(CheckpointError, match="the last batch, 2, is intact"):
        roll_back(None, checkpoint)  # type: ignore[arg-type]
    assert "2" in left(checkpoint, "commits")


def test_an_older_state_is_named_if_the_previous_one_is_also_damaged(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    states(monkeypatch, WHOLE, DAMAGED, DAMAGED)
    with pytest.raises(CheckpointError, match=r"before batch 2 is damaged, too.*--batch 0`.*new --checkpoint"):
        roll_back(None, checkpoint)  # type: ignore[arg-type]
    states(monkeypatch, DAMAGED, DAMAGED, DAMAGED)
    with pytest.raises(CheckpointError, match=r"no older intact state.*backup"):
        roll_back(None, checkpoint)  # type: ignore[arg-type]
    assert "2" in left(checkpoint, "commits")


@pytest.mark.parametrize("compacted", [False, True])
def test_a_batch_is_not_rolled_back_once_its_files_are_deleted(
    checkpoint: Checkpoint, compacted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    states(monkeypatch, WHOLE, WHOLE, DAMAGED)
    log = checkpoint.query / "sources/0"
    if compacted:
        entries = [(log / str(batch)).read_text().splitlines()[1] for batch in range(3)]
        (log / "2").unlink()
        (log / "2.compact").write_text("\n".join(["v1", *entries]))
    (checkpoint.root.parent / "my events/1.jsonl").unlink()
    lost = checkpoint.root.parent / "my events/2.jsonl"
    lost.unlink()
    with pytest.raises(
        CheckpointError, match=rf"1 of the files that it read are deleted, such as {lost}\. .*--batch 1`"
    ):
        roll_back(None, checkpoint)  # type: ignore[arg-type]
    assert "2" in left(checkpoint, "commits")


def test_reading_a_damaged_state_names_its_shard_and_the_remedy(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    states(monkeypatch, WHOLE, WHOLE, DAMAGED)
    message = rf"checkpoint {checkpoint.root}, cluster 'c1', shard 3: .*damaged.*`state rollback`.*--batch 1`"
    with pytest.raises(CheckpointError, match=message):
        read_whole(None, checkpoint)  # type: ignore[arg-type]
    assert [stored.shard for stored in read_whole(None, checkpoint, 1)] == [0, 3]  # type: ignore[arg-type]
