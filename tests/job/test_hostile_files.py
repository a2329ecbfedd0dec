"""Whatever the folder of events holds, the job continues; files that cannot be read are in rejected_events."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from collections import Counter
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from tests.job.commands import Ended
from tests.job.recordings import Line, cut, disordered, write_files
from tests.job.table_bags import bags_of, differences, rows_of

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

_UTF_16 = '{"schema_version": 1, "type": "clock"}\n'.encode("utf-16")


def test_every_file_of_the_folder_is_read_or_named(
    whole: Path, lines: list[Line], run_once: Callable[..., Ended], tmp_path: Path
) -> None:
    folder = tmp_path / "events"
    texts = cut(disordered(lines, seed=6), 6)
    names = [
        "plain without an end",
        "a b.jsonl.gz",
        "ü#%41?.jsonl.bz2",
        "2026-11-21T03:12:00Z.jsonl",
        "x.xz",
        "[1]*.gz",
    ]
    contents = [
        texts[0].rstrip(b"\n"),
        gzip.compress(texts[1]),
        bz2.compress(texts[2]),
        texts[3],
        lzma.compress(texts[4]),
    ]
    for name, content, path in zip(
        names, [*contents, gzip.compress(texts[5])], write_files(folder, texts), strict=True
    ):
        age = path.stat().st_mtime
        path.write_bytes(content)
        os.utime(path, (age, age))
        path.rename(folder / name)
    assert len(list(folder.iterdir())) == 6

    long_line = b"x" * 100_000_000
    broken = {
        "truncated.gz": gzip.compress(os.urandom(10_000))[:-1],
        "plain.gz": texts[0],
        "nothing.bz2": b"not bzip2",
        "nothing.zst": b"not zstd",
    }
    refused = {"a.snappy": b"any", "a.lz4": b"\x04\x22\x4d\x18", "a.deflate": b"any", "a.zip": b"PK\x03\x04"}
    for name, content in (broken | refused).items():
        (folder / name).write_bytes(content)
    # A file of length 0 has no events, and is not opened.
    (folder / "empty.jsonl").write_bytes(b"")
    (folder / "empty.gz").write_bytes(b"")
    (folder / "zeros.jsonl").write_bytes(b"\x00" * 1000)
    (folder / "utf-16.jsonl").write_bytes(_UTF_16)
    (folder / "long.jsonl").write_bytes(long_line + b"\n")
    (folder / "long.jsonl.gz").write_bytes(gzip.compress(long_line, 1))
    (folder / "folder.jsonl.gz").mkdir()
    (folder / "nowhere.jsonl").symlink_to(tmp_path / "nowhere")
    (folder / "nowhere.gz").symlink_to(tmp_path / "nowhere")
    os.mkfifo(folder / "pipe.jsonl")
    os.mkfifo(folder / "pipe.gz")

    ended = run_once(folder, tmp_path, "--flush")
    assert ended.exit_code == 0, ended.stderr[-3000:]
    rejected = rows_of(tmp_path / "tables", "rejected_events").to_pylist()
    files = {row["position"]: row for row in rejected if "#" not in row["position"]}
    reasons = dict.fromkeys(broken, "broken_compressed_file") | dict.fromkeys(refused, "unsupported_compression")
    assert {name: row["reason"] for name, row in files.items()} == reasons
    for name, content in (broken | refused).items():
        assert (files[name]["raw_length"], files[name]["raw_sha256"]) == (len(content), sha256(content).hexdigest())
        assert files[name]["raw"].startswith(content[:3].decode("utf-8", "backslashreplace"))
    parts = [b"\x00" * 1000, *_UTF_16.split(b"\n"), long_line, long_line]
    # The lines before the break in the truncated file count like any others.
    of_lines = Counter(
        row["raw_sha256"] for row in rejected if "#" in row["position"] and "truncated.gz" not in row["position"]
    )
    assert of_lines == Counter(sha256(part).hexdigest() for part in parts)
    assert Counter(row["raw_length"] for row in rejected)[len(long_line)] == 2
    expected = bags_of(whole) | {"rejected_events": Counter()}
    assert differences(expected, bags_of(tmp_path / "tables") | {"rejected_events": Counter()}) == []
