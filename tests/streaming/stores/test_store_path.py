"""A file or folder of a store, with the methods of a path that the monitor uses."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from streaming.stores.store_path import MARKER, StorePath, access_variables

if TYPE_CHECKING:
    from tests.kit.s3 import S3Server


def test_names_are_taken_apart_without_a_store() -> None:
    path = StorePath("abfss://box@account.dfs.core.windows.net/lake") / "in" / "a.jsonl.gz"
    assert (path.root, path.key) == ("abfss://box@account.dfs.core.windows.net", "lake/in/a.jsonl.gz")
    assert (path.name, path.suffix, str(path.parent)) == ("a.jsonl.gz", ".gz", f"{path.root}/lake/in")
    assert path.parent / "a.jsonl.gz" == path
    assert sorted([path, path.parent]) == [path.parent, path]
    assert len({path, path.parent / path.name}) == 1
    assert StorePath("s3://lake").key == ""


@pytest.mark.broker
def test_a_file_is_read_piece_by_piece(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    file = StorePath(s3.folder(monkeypatch)) / "a.gz"
    lines = b"".join(b"%d\n" % number for number in range(500_000))
    file.write_bytes(gzip.compress(lines, 1))
    with file.open() as opened, gzip.open(opened) as stream:
        assert stream.read() == lines
    with file.open() as opened:
        first = opened.read(10)
        opened.seek(0)
        assert opened.read(10) == first
        opened.seek(-4, 2)
        assert int.from_bytes(opened.read(), "little") == len(lines)


@pytest.mark.broker
def test_an_empty_folder_is_there_once_it_is_made(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = StorePath(s3.folder(monkeypatch))
    folder.mkdir()
    assert [file.name for file in folder.iterdir()] == [MARKER]
    with pytest.raises(IsADirectoryError):
        folder.stat()
    folder.mkdir()
    assert folder.parent.is_dir()


@pytest.mark.broker
def test_the_variables_of_one_process_open_the_store_in_another(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    file = StorePath(s3.folder(monkeypatch)) / "x"
    file.write_bytes(b"1")
    variables = access_variables()
    for name in variables:
        monkeypatch.delenv(name)
    with pytest.raises(OSError, match=r"an error occurred|refused"):
        file.read_bytes()
    assert StorePath(str(file), variables).read_bytes() == b"1"


@pytest.mark.broker
def test_credentials_that_change_are_used_at_once(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = StorePath(s3.folder(monkeypatch))
    folder.mkdir()
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
    for call in (folder.exists, lambda: list(folder.iterdir()), (folder / "x").read_bytes):
        with pytest.raises(PermissionError) as refused:
            call()
        assert "hush" not in str(refused.value)
    with pytest.raises(PermissionError, match="SignatureDoesNotMatch"):
        (folder / "x").write_bytes(b"x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3.options["AWS_SECRET_ACCESS_KEY"])
    assert folder.exists()
