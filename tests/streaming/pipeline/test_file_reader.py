"""Files that a worker reads by itself: every line is read, or the reason why not is reported."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.pipeline.codecs import DECOMPRESSED, REFUSED
from streaming.pipeline.file_reader import Lines, UnreadableInput, _Cutter, read_whole, why_unreadable

LONGEST = 1_000
KEPT = 100
LINES = [b'{"line": %d, "text": "%s"}' % (number, b"x" * (number % 97)) for number in range(5_000)]
TEXT = b"".join(line + b"\n" for line in LINES)


def arrow(codec: str) -> Callable[[bytes], bytes]:
    return lambda text: pa.Codec(codec).compress(text, asbytes=True)


WRITERS: dict[str, Callable[[bytes], bytes]] = {
    "a.gz": gzip.compress,
    "two members.gz": lambda text: gzip.compress(text[:1000]) + gzip.compress(text[1000:]),
    "LOUD.GZ": gzip.compress,
    "a.jsonl.bz2": bz2.compress,
    "a.xz": lzma.compress,
    "a.lzma": lambda text: lzma.compress(text, lzma.FORMAT_ALONE),
    "a.zst": arrow("zstd"),
}
WITHOUT_CHECKSUM = ("a.lzma", "a.zst")


def read(path: Path, longest: int = LONGEST) -> tuple[list[bytes], list[UnreadableInput]]:
    pieces = list(read_whole(path, longest_bytes=longest, kept_bytes=KEPT))
    lines = [line for piece in pieces if isinstance(piece, Lines) for line in piece.lines]
    return lines, [piece for piece in pieces if isinstance(piece, UnreadableInput)]


@pytest.mark.parametrize("name", WRITERS)
def test_a_valid_file_is_read_by_the_suffix_of_its_name(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(WRITERS[name](TEXT))
    assert len(path.read_bytes()) < len(TEXT)
    assert read(path) == (LINES, [])


@pytest.mark.parametrize("name", WRITERS)
def test_lines_before_the_break_of_a_truncated_file_are_read_and_the_file_is_named(name: str, tmp_path: Path) -> None:
    whole = WRITERS[name](TEXT)
    path = tmp_path / name
    for length in (1, 3, 9, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        lines, (problem,) = read(path)
        # The last one may be cut.
        assert lines[:-1] == LINES[: len(lines[:-1])], length
        assert not lines or LINES[len(lines) - 1].startswith(lines[-1]), length
        assert (problem.reason, problem.length, problem.is_line) == ("broken_compressed_file", length, False)
        assert problem.beginning == whole[: min(length, KEPT + 1)]
        assert problem.sha256 == hashlib.sha256(whole[:length]).hexdigest()
        assert problem.detail


@pytest.mark.parametrize("name", ["a.gz", "a.jsonl.bz2", "a.xz", "a.zst"])
def test_a_truncated_file_gives_nearly_all_that_can_be_had(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(WRITERS[name](TEXT + os.urandom(300_000).replace(b"\n", b"") + b"\n")[:-40])
    lines, (problem,) = read(path, longest=10**6)
    # bzip2 and xz are decompressed a block at a time: the last block is lost as a whole.
    assert lines[: len(LINES)] == ([] if "bz2" in name else LINES)
    assert problem.reason == "broken_compressed_file"


@pytest.mark.parametrize("suffix", [*REFUSED, ".LZ4"])
def test_other_compressions_are_refused_by_name_with_the_remedy(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_bytes(TEXT)
    lines, (problem,) = read(path)
    assert (lines, problem.reason, problem.length) == ([], "unsupported_compression", len(TEXT))
    assert suffix in problem.detail
    assert "use gzip, bzip2, xz, zstd or no compression" in problem.detail
    assert problem.sha256 == hashlib.sha256(TEXT).hexdigest()


@pytest.mark.parametrize("suffix", DECOMPRESSED)
@pytest.mark.parametrize(
    "content", [b"", b'{"plain": "json"}\n' * 50, b"\x00" * 1000, b"\xff" * 1000, b"\x04\x22\x4d\x18" * 99]
)
def test_content_that_does_not_fit_its_suffix_is_named(suffix: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_bytes(content)
    lines, problems = read(path)
    assert [problem.reason for problem in problems] == ["broken_compressed_file"], lines
    assert problems[0].length == len(content)
    assert lines == []


@given(st.data())
def test_a_damaged_file_is_named_unless_its_lines_are_what_they_were(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(sorted(WRITERS)))
    valid = WRITERS[name](TEXT[:5_000])
    damaged = bytearray(valid)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(valid) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("damaged") / name
    path.write_bytes(bytes(damaged))
    lines, problems = read(path, longest=10**6)
    broken = [problem for problem in problems if not problem.is_line]
    assert [(problem.reason, problem.sha256) for problem in broken] in (
        [],
        [("broken_compressed_file", hashlib.sha256(damaged).hexdigest())],
    )
    # Without a checksum, damage may give other lines, and lines too long to be events.
    if not broken and name not in WITHOUT_CHECKSUM:
        assert (lines, problems) == (TEXT[:5_000].split(b"\n"), [])


@given(st.lists(st.binary(max_size=40)), st.integers(1, 60), st.integers(1, 30))
def test_however_blocks_are_cut_the_lines_are_the_same(lines: list[bytes], block: int, longest: int) -> None:
    text = b"\n".join(lines)
    cutter = _Cutter(longest, KEPT)
    pieces = [piece for start in range(0, len(text), block) for piece in cutter.cut(text[start : start + block])]
    pieces += cutter.end()
    reported: list[bytes] = []
    for piece in pieces:
        if isinstance(piece, Lines):
            # The block's size decides whether a line just over the limit is kept here: the parser refuses it anyway.
            assert all(len(line) <= longest + block for line in piece.lines)
            reported += piece.lines
        else:
            assert piece.length > longest
            assert piece.length == len(piece.beginning)
            assert piece.sha256 == hashlib.sha256(piece.beginning).hexdigest()
            reported.append(piece.beginning)
    # An empty last line without a line end does not count.
    assert reported == (text.split(b"\n")[:-1] if text.endswith(b"\n") or not text else text.split(b"\n"))


def test_a_line_of_any_length_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl.gz"
    length = 300_000_000
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"first\n")
        for _ in range(length // 1_000_000):
            file.write(b"a" * 1_000_000)
        file.write(b"\nlast")
    tracemalloc.start()
    try:
        lines, (long,) = read(path, longest=16 << 20)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert lines == [b"first", b"last"]
    assert (long.reason, long.length, long.is_line) == ("oversized_event", length, True)
    assert long.beginning == b"a" * (KEPT + 1)
    assert long.sha256 == hashlib.sha256(b"a" * length).hexdigest()
    assert peak < length // 2


def test_a_deleted_file_of_a_collector_is_named(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000007-kafka-c1.jsonl"
    for problems in ([why_unreadable(path)], read(path)[1]):
        assert [problem.reason for problem in problems if problem is not None] == ["deleted_file"]


def test_a_path_that_is_not_a_file_is_named_and_a_deleted_file_is_skipped(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gz")
    (tmp_path / "device.gz").symlink_to("/dev/zero")
    (tmp_path / "nowhere.gz").symlink_to(tmp_path / "nowhere")
    for name in ("pipe.gz", "device.gz"):
        problem = why_unreadable(tmp_path / name)
        assert problem is not None
        assert (problem.reason, problem.detail) == ("unreadable_file", "It is not a regular file")
        assert read(tmp_path / name) == ([], [problem])
    for name in ("nowhere.gz", "gone.gz"):
        assert why_unreadable(tmp_path / name) is None
        assert read(tmp_path / name) == ([], [])


def test_a_file_that_may_not_be_opened_is_named(tmp_path: Path) -> None:
    path = tmp_path / "secret.jsonl"
    path.write_bytes(TEXT)
    path.chmod(0)
    user = os.geteuid()
    if user == 0:  # Root may open everything.
        os.seteuid(65534)
    try:
        problem = why_unreadable(path)
        read_at_all = read(path)
    finally:
        os.seteuid(user)
    assert problem is not None
    assert (problem.reason, problem.detail) == ("unreadable_file", "Permission denied")
    assert read_at_all == ([], [problem])
