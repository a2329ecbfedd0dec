"""A folder of this machine and one of a store, used in the same way."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.stores.places import Place, hadoop_uri, place_named, place_of, write_whole
from streaming.stores.store_path import StorePath


@pytest.mark.parametrize("name", ["a b.json", "ü.json", "a#b.json", "a%20b.json", "03:12.json", "a?b[1]{}*.json"])
def test_a_path_that_spark_names_is_found(name: str, tmp_path: Path) -> None:
    # Hadoop's Path#toUri writes reserved characters in percent, and others unchanged.
    written = "".join(f"%{ord(char):02X}" if char in ' %#?[]{}"' else char for char in str(tmp_path / name))
    for scheme in ("file:", "file://"):
        assert place_named(scheme + written) == tmp_path / name


def test_a_file_of_a_store_that_spark_names_is_found() -> None:
    assert place_named("s3a://lake/in/a%20b%23c.json") == StorePath("s3://lake/in/a b#c.json")
    assert place_named("hdfs://name:8020/in/x") == StorePath("hdfs://name:8020/in/x")


def test_spark_is_given_the_scheme_that_hadoop_has(tmp_path: Path) -> None:
    assert hadoop_uri(StorePath("s3://lake/s3://x")) == "s3a://lake/s3://x"
    assert hadoop_uri(StorePath("gs://lake/x")) == "gs://lake/x"
    assert hadoop_uri(tmp_path) == f"file://{tmp_path}"
    assert hadoop_uri("s3://lake/groups") == "s3a://lake/groups"
    assert hadoop_uri("/lake/groups") == "file:///lake/groups"


def test_a_place_on_a_disk_does_not_depend_on_where_a_command_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert place_of(Path("in")) == tmp_path / "in"
    assert place_of("s3://lake/in") == StorePath("s3://lake/in")


def test_a_written_file_is_there_whole(either_place: Place) -> None:
    either_place.mkdir(parents=True, exist_ok=True)
    either_place.mkdir(parents=True, exist_ok=True)
    for content in (b"one", b"two", b"", b"\xff" * 20_000_000):
        write_whole(either_place / "a.json", content, modified_ns=10**18)
        assert (either_place / "a.json").read_bytes() == content
        assert (either_place / "a.json").stat().st_size == len(content)
    assert [file.name for file in either_place.glob("a.*")] == ["a.json"]
    assert not list(either_place.glob("*.tmp"))


def test_both_are_listed_and_emptied_in_the_same_way(either_place: Place) -> None:
    either_place = either_place / "new"
    assert not either_place.exists()
    either_place.mkdir(parents=True, exist_ok=True)
    assert either_place.is_dir()
    for name in ("2.json", "1.json", ".hidden", "a%20b #[1].json"):
        write_whole(either_place / name, name.encode())
    (either_place / "below").mkdir()
    write_whole(either_place / "below" / "3.json", b"3")
    names = {file.name: file.is_dir() for file in either_place.iterdir() if file.name != ".keep"}
    assert names == {"1.json": False, "2.json": False, ".hidden": False, "a%20b #[1].json": False, "below": True}
    assert sorted(file.name for file in either_place.glob("[0-9]*")) == ["1.json", "2.json"]
    assert (either_place / "a%20b #[1].json").read_text() == "a%20b #[1].json"
    (either_place / "1.json").unlink()
    (either_place / "1.json").unlink(missing_ok=True)
    assert not (either_place / "1.json").exists()
    for read in ((either_place / "1.json").read_bytes, (either_place / "1.json").stat):
        with pytest.raises(FileNotFoundError):
            read()
