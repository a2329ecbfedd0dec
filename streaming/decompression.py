"""Shell: what compressed files hold, a piece at a time, up to where they break."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

_PIECE_BYTES = 1 << 16
# BlockCompressorStream of Hadoop: the length of a block, then pieces of it, each behind its own length.
_LENGTH_BYTES = 4
# No writer makes larger ones: io.compression.codec.*.buffersize is 256 KiB.
_LARGEST_BLOCK_BYTES = 64 << 20
# Lz4Codec of Hadoop: how much one piece of a block holds, its buffer less what LZ4 may add.
_LZ4_PIECE_BYTES = 262_144 - (262_144 // 255 + 16)
_LZ4_FRAME = b"\x04\x22\x4d\x18"

# What the libraries say of bytes that are not what they should be. A disk's own errors have a number.
BROKEN = (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError)


def decompressed(path: Path, suffix: str) -> Iterator[bytes]:
    """Answer the bytes within a compressed file, however many, in small pieces.

    Args:
        suffix: One of ``COMPRESSED``, or of ``UNREADABLE``.

    Raises:
        BROKEN: Here it goes no further; what came before is sound as far as can be told.
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


def _deflate(file: BinaryIO) -> Iterator[bytes]:
    """Read zlib's own format, as Hadoop writes it."""
    stream = zlib.decompressobj()
    while not stream.eof:
        compressed = stream.unconsumed_tail or file.read(_PIECE_BYTES)
        if not compressed:
            raise EOFError("it ends in the middle")
        yield stream.decompress(compressed, _PIECE_BYTES)


def _zstandard(file: BinaryIO) -> Iterator[bytes]:
    return _arrow_stream(file, "zstd")


def _arrow_stream(file: BinaryIO, codec: str) -> Iterator[bytes]:
    sound = 0
    try:
        for piece in _pieces(_arrow_reader(file, codec)):
            sound += len(piece)
            yield piece
    except OSError:
        # The piece in which it breaks is lost: once more, byte by byte.
        read = _arrow_reader(file, codec)
        while sound:
            sound -= len(read(min(sound, _PIECE_BYTES)))
        while byte := read(1):
            yield byte


def _arrow_reader(file: BinaryIO, codec: str) -> Callable[[int], bytes]:
    read: Callable[[int], bytes] = pa.CompressedInputStream(pa.OSFile(file.name), codec).read
    return read


def _lz4(file: BinaryIO) -> Iterator[bytes]:
    """Read LZ4's own frames, and the blocks that Hadoop writes under the same name."""
    framed = file.read(len(_LZ4_FRAME)) == _LZ4_FRAME
    file.seek(0)
    return _arrow_stream(file, "lz4") if framed else _hadoop_blocks(file, _lz4_piece)


def _lz4_piece(compressed: bytes, left: int) -> bytes:
    length = min(left, _LZ4_PIECE_BYTES)
    codec = pa.Codec("lz4_raw")
    piece: bytes = codec.decompress(compressed, decompressed_size=length, asbytes=True)
    # A piece does not tell its length, and one that is shorter would be filled up with whatever was there.
    try:
        codec.decompress(compressed, decompressed_size=length - 1)
    except OSError:
        return piece
    raise ValueError(f"a piece of less than {length} bytes in a block that has {left} left")


def _snappy(file: BinaryIO) -> Iterator[bytes]:
    return _hadoop_blocks(file, _snappy_piece)


def _snappy_piece(compressed: bytes, left: int) -> bytes:
    # The length goes before, seven bits to a byte, the lowest first.
    length = 0
    for place, byte in enumerate(compressed[:5]):
        length |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            break
    if length > left:
        raise ValueError(f"a piece of {length} bytes in a block that has {left} left")
    piece: bytes = pa.Codec("snappy").decompress(compressed, decompressed_size=length, asbytes=True)
    return piece


def _hadoop_blocks(file: BinaryIO, decompress: Callable[[bytes, int], bytes]) -> Iterator[bytes]:
    while head := file.read(_LENGTH_BYTES):
        left = _length(head)
        # What is empty ends with such a block.
        if not left and file.read(1):
            raise ValueError("an empty block in the middle")
        while left > 0:
            compressed = file.read(_length(file.read(_LENGTH_BYTES)))
            piece = decompress(compressed, left)
            left -= len(piece)
            yield piece


def _length(head: bytes) -> int:
    if len(head) < _LENGTH_BYTES:
        raise EOFError("it ends in the middle")
    length = int.from_bytes(head, "big")
    if length > _LARGEST_BLOCK_BYTES:
        raise ValueError(f"a block of {length} bytes")
    return length


def _unknown(_file: BinaryIO) -> Iterator[bytes]:
    raise ValueError("no compression that is read here")


_READERS: dict[str, Callable[[BinaryIO], Iterator[bytes]]] = {
    ".gz": _gzip,
    ".gzip": _gzip,
    ".bz2": _bzip2,
    ".xz": _xz,
    ".lzma": _xz,
    ".zst": _zstandard,
    ".zstd": _zstandard,
    ".lz4": _lz4,
    ".snappy": _snappy,
    ".deflate": _deflate,
    # Nobody calls lines of text so.
    **dict.fromkeys((".zip", ".7z", ".rar", ".tar", ".tgz", ".br", ".lzo", ".z"), _unknown),
}
# The ends of names by which a compressed file is known, in small letters.
COMPRESSED = tuple(_READERS)
