"""Checkpoints: an identity that is fixed, and marks that stay in order."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

from streaming.spark.checkpoint import Checkpoint, CheckpointError, ControlFolder, Identity
from streaming.stores.places import Place


def opened(root: Place, *, shards: int = 8, sources: tuple[str, ...] = ("control", "events:/e")) -> Identity:
    return Checkpoint(root if isinstance(root, Path) else str(root)).open(
        shards=shards, shuffle_partitions=2, sources=sources
    )


def test_a_checkpoint_keeps_its_identity(either_place: Place) -> None:
    assert opened(either_place / "c") == opened(either_place / "c")
    # Spark reads these folders before anything is written to them.
    assert all((either_place / "c" / name).is_dir() for name in ("control", "collected"))


def test_output_of_the_jvm_is_on_a_disk_wherever_the_checkpoint_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert Checkpoint(tmp_path).log_file("spark.log") == tmp_path / "spark.log"
    log_file, other_file = (Checkpoint(f"s3://lake/{name}").log_file("spark.log") for name in ("one", "other"))
    assert log_file != other_file
    assert log_file.name == "spark.log"
    assert tmp_path in log_file.parents
    [logs] = tmp_path.iterdir()
    assert logs.stat().st_mode & 0o077 == 0
    logs.rename(tmp_path / "elsewhere")
    logs.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CheckpointError, match="belongs to another user"):
        Checkpoint("s3://lake/one").log_file("spark.log")


def test_two_checkpoints_have_different_app_ids(tmp_path: Path) -> None:
    assert opened(tmp_path / "a").app_id != opened(tmp_path / "b").app_id


@pytest.mark.parametrize(
    ("change", "remedy"), [({"shards": 16}, "--shards 8"), ({"sources": ("control", "kafka:k")}, "events:/e")]
)
def test_fixed_properties_cannot_be_changed(tmp_path: Path, change: dict[str, object], remedy: str) -> None:
    opened(tmp_path)
    with pytest.raises(CheckpointError, match=remedy):
        opened(tmp_path, **change)  # type: ignore[arg-type]


def test_a_newer_identity_is_refused(tmp_path: Path) -> None:
    opened(tmp_path)
    file = tmp_path / "identity.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"version": 99}))
    with pytest.raises(CheckpointError, match="newer version"):
        opened(tmp_path)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": 1}'])
def test_a_damaged_identity_is_refused(tmp_path: Path, content: str) -> None:
    opened(tmp_path)
    (tmp_path / "identity.json").write_text(content)
    with pytest.raises(CheckpointError, match="cannot be read"):
        opened(tmp_path)


def test_a_foreign_query_is_refused(tmp_path: Path) -> None:
    (tmp_path / "query" / "offsets").mkdir(parents=True)
    with pytest.raises(CheckpointError, match="not made by the monitor"):
        opened(tmp_path)


def test_marks_are_read_in_the_order_in_which_they_were_made(either_place: Place) -> None:
    ControlFolder(either_place).mark("flush", {"b": {}, "a": {}})
    ControlFolder(either_place).mark("tick", {"a": {"time": 5}})
    files = sorted(file.name for file in either_place.iterdir())
    assert [file.split("-")[1] for file in files] == ["flush.json", "tick.json"]
    lines = [json.loads(line) for line in (either_place / files[0]).read_text().splitlines()]
    assert lines == [{"control": "flush", "cluster": "a"}, {"control": "flush", "cluster": "b"}]
    assert json.loads((either_place / files[1]).read_text()) == {"control": "tick", "cluster": "a", "time": 5}


def test_no_mark_takes_a_name_that_was_there_before(tmp_path: Path) -> None:
    names = set()
    for _ in range(3):
        control = ControlFolder(tmp_path)
        for _ in range(3):
            control.mark("tick", {"a": {"time": 5}})
            (file,) = tmp_path.iterdir()
            names.add(file.name)
            file.unlink()
    assert len(names) == 9
