"""Shell: decompresses files piece by piece, up to where they are damaged."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO

import pyarrow as pa

from streaming.stores.places import Place

_PIECE_BYTES = 1 << 16
# The libraries raise these errors for corrupt bytes. A disk's own errors have a number.
BROKEN = (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError)


def decompressed(path: Place, suffix: str) -> Iterator[bytes]:
    """Return the bytes within a compressed file, however many, in small pieces.

    Raises:
        BROKEN: Decompression ends here; the content before is valid as far as can be checked.
    """
    with path.open("rb") as file:
        if not file.read(1):
            raise EOFError("it is empty")
        file.seek(0)
        yield from _READERS[suffix](file)


def _gzip(file: BinaryIO) -> Iterator[bytes]:
    with gzip.open(file) as stream:
        yield from _pieces(stream.read1)


def _bzip2(file: BinaryIO) -> Iterator[bytes]:
    with bz2.open(file) as stream:
        yield from _pieces(stream.read1)


def _xz(file: BinaryIO) -> Iterator[bytes]:
    with lzma.open(file) as stream:
        yield from _pieces(stream.read1)


def _pieces(read: Callable[[int], bytes]) -> Iterator[bytes]:
    while piece := read(_PIECE_BYTES):
        yield piece


def _zstandard(file: BinaryIO) -> Iterator[bytes]:
    intact = 0
    try:
        for piece in _pieces(_arrow_reader(file)):
            intact += len(piece)
            yield piece
    except OSError:
        # The piece with the damage would be lost, so it is read again byte by byte.
        read = _arrow_reader(file)
        while intact:
            intact -= len(read(min(intact, _PIECE_BYTES)))
        while byte := read(1):
            yield byte


def _arrow_reader(file: BinaryIO) -> Callable[[int], bytes]:
    # A file on a disk has a name, and is read without Python.
    if hasattr(file, "name"):
        compressed = pa.OSFile(file.name)
    else:
        file.seek(0)
        compressed = pa.PythonFile(file, mode="r")
    read: Callable[[int], bytes] = pa.CompressedInputStream(compressed, "zstd").read
    return read


_READERS: dict[str, Callable[[BinaryIO], Iterator[bytes]]] = {
    ".gz": _gzip,
    ".gzip": _gzip,
    ".bz2": _bzip2,
    ".xz": _xz,
    ".lzma": _xz,
    ".zst": _zstandard,
    ".zstd": _zstandard,
}
# Suffixes of compressed files in lower case: those that are read, and those that are rejected.
DECOMPRESSED = tuple(_READERS)
REFUSED = (".lz4", ".snappy", ".deflate", ".zip", ".7z", ".rar", ".tar", ".tgz", ".br", ".lzo", ".z")
