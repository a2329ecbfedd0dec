"""Compressed files are read in small pieces, and up to the place where they break."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from streaming.pipeline.codecs import BROKEN, DECOMPRESSED, REFUSED, decompressed

# A megabyte that does not compress, and one that does, both compressed.
TEXT = random.Random(7).randbytes(1_000_000) + b"x" * 1_000_000
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".gzip": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".lzma": lambda text: lzma.compress(text, lzma.FORMAT_ALONE),
    ".zst": lambda text: pa.Codec("zstd").compress(text, asbytes=True),
    ".zstd": lambda text: pa.Codec("zstd").compress(text, asbytes=True),
}


def taken(path: Path, suffix: str) -> tuple[bytes, bool]:
    """Return all bytes that come, and whether the file was whole."""
    found = bytearray()
    try:
        for piece in decompressed(path, suffix):
            found += piece
    except BROKEN:
        return bytes(found), False
    return bytes(found), True


def test_every_suffix_that_is_read_is_tested_here_and_none_is_refused_too() -> None:
    assert set(COMPRESS) == set(DECOMPRESSED)
    assert not set(DECOMPRESSED) & set(REFUSED)


@pytest.mark.parametrize("suffix", DECOMPRESSED)
def test_content_comes_whole_and_in_pieces_that_fit_into_memory(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(COMPRESS[suffix](TEXT))
    pieces = list(decompressed(path, suffix))
    assert b"".join(pieces) == TEXT
    assert max(map(len, pieces)) <= 1 << 16


@pytest.mark.parametrize("suffix", DECOMPRESSED)
def test_a_truncated_file_gives_its_beginning_and_an_error(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    whole = COMPRESS[suffix](TEXT)
    path.write_bytes(whole[: len(whole) // 2])
    found, is_whole = taken(path, suffix)
    assert not is_whole
    assert TEXT.startswith(found)
    if suffix not in (".bz2", ".xz"):  # these are decompressed a block at a time
        assert len(found) > 200_000


def test_a_damaged_zstandard_file_is_read_up_to_the_last_valid_byte(tmp_path: Path) -> None:
    path = tmp_path / "file"
    # Two frames; the second is cut within its header.
    path.write_bytes(COMPRESS[".zst"](b"first\n" * 1_000) + COMPRESS[".zst"](b"second")[:6])
    found, is_whole = taken(path, ".zst")
    assert (found, is_whole) == (b"first\n" * 1_000, False)


@pytest.mark.parametrize("suffix", DECOMPRESSED)
def test_an_empty_file_was_never_compressed(suffix: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert taken(tmp_path / "file", suffix) == (b"", False)
