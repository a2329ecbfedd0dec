"""The command `state`: the errors it reports before Spark starts, and the checkpoint as it shows and exports it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import streaming.commands.state
import streaming.spark.rollback
import streaming.spark.session
from streaming.commands.app import app
from streaming.spark.checkpoint import Checkpoint
from streaming.spark.state_reader import StoredShard
from tests.core_config import core_config
from tests.udfs.shard.shard_script import CLUSTER, Cluster, clock, join
from udfs.group import coordinator

SHARDS = 3


class NoSpark:
    """Replaces the session; the test supplies the state that is read."""

    stopped = 0

    def stop(self) -> None:
        self.stopped += 1


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> NoSpark:
    session = NoSpark()
    monkeypatch.setattr(streaming.spark.session, "start_session", lambda *_, **__: session)
    return session


@pytest.fixture
def checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkpoint:
    """A checkpoint that has completed a batch, with two groups in its state."""
    opened = Checkpoint(tmp_path / "c")
    opened.open(shards=SHARDS, shuffle_partitions=1, sources=["control"])
    (opened.query / "commits").mkdir(parents=True)
    cluster = Cluster(coordinator, core_config(shards=SHARDS, allowed_lateness_ms=0))
    cluster.batch(join("a", 0, "g"), join("b", 0, "h"), clock(500))
    stored = [StoredShard(CLUSTER, shard, data) for shard, data in cluster.states.items() if data is not None]
    monkeypatch.setattr(streaming.spark.rollback, "read_whole", lambda *_: stored)
    return opened


def test_a_checkpoint_without_a_batch_has_no_state_yet(tmp_path: Path, complaint: Callable[..., str]) -> None:
    assert "holds no state yet" in complaint("state", "show", "--checkpoint", str(tmp_path / "absent"))


def test_every_place_that_cannot_be_used_is_named_at_once(
    tmp_path: Path, complaint: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "minio:9000")
    (tmp_path / "file").touch()
    for out, problem in (("s3://lake/out", "the variable AWS_ENDPOINT_URL is"), (tmp_path / "file", "is not a folder")):
        text = complaint("state", "export", "--checkpoint", "s3://lake/c", "--out", str(out))
        assert "--checkpoint s3://lake/c: the variable AWS_ENDPOINT_URL is" in text
        assert f"--out {out}: " in text
        assert problem in text


def test_a_checkpoint_that_may_only_be_read_is_shown_but_not_rolled_back(
    checkpoint: Checkpoint, spark: NoSpark, complaint: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming.commands.state, "access_error", lambda _: "may be read but not written")
    assert "may be read but not written" in complaint("state", "rollback", "--checkpoint", str(checkpoint.root))
    assert CliRunner().invoke(app, ["state", "show", "--checkpoint", str(checkpoint.root)]).exit_code == 0


def test_each_shard_is_shown_and_spark_is_stopped(checkpoint: Checkpoint, spark: NoSpark) -> None:
    shown = ["state", "show", "--checkpoint", str(checkpoint.root)]
    shards = [json.loads(line) for line in CliRunner().invoke(app, [*shown, "--json"]).stdout.splitlines()]
    assert [shard["shard"] for shard in shards] == list(range(SHARDS))
    assert sum(shard["groups"] for shard in shards) == 2
    assert all(shard["newest"].endswith("Z") for shard in shards if shard["groups"])
    assert spark.stopped == 1
    table = CliRunner().invoke(app, shown).stdout.splitlines()
    assert len(table) == 1 + SHARDS
    other = CliRunner().invoke(app, [*shown, "--json", "--cluster", "other"])
    assert (other.exit_code, other.stdout) == (2, "")
    assert f"there is no cluster other; there is {CLUSTER}" in other.stderr


def test_an_export_writes_the_groups_of_all_shards_and_never_over_other_files(
    checkpoint: Checkpoint, spark: NoSpark, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    export = ["state", "export", "--checkpoint", str(checkpoint.root), "--out", str(out)]
    assert CliRunner().invoke(app, export).exit_code == 0
    lines = [json.loads(line) for file in out.iterdir() for line in file.read_bytes().splitlines()]
    assert {line["group"] for line in lines if line["type"] == "group_snapshot"} == {"g", "h"}
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    refused = CliRunner().invoke(app, export)
    assert (refused.exit_code, "has files already" in refused.output) == (2, True)
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before


def test_a_batch_is_not_rolled_back_beside_a_job_that_runs(
    checkpoint: Checkpoint, spark: NoSpark, monkeypatch: pytest.MonkeyPatch, complaint: Callable[..., str]
) -> None:
    monkeypatch.setattr(streaming.spark.rollback, "roll_back", lambda *_: 7)
    arguments = ["state", "rollback", "--checkpoint", str(checkpoint.root)]
    with checkpoint.exclusive_lock():
        assert "another job runs on" in complaint(*arguments)
    assert "batch 7 is rolled back" in CliRunner().invoke(app, arguments).stdout
    assert spark.stopped == 2
