"""Core: zstd frames, checked to be no longer than they claim and to claim no more than their bytes can hold. No I/O."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

# RFC 8878, 3.1.1: magic number, then a descriptor of how the content's size is written.
_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_DICTIONARY_BYTES: Final = (0, 1, 2, 4)
_SIZE_BYTES: Final = (0, 2, 4, 8)
# RFC 8878, 3.1.1.2: a block has a header of three bytes, and at most 128 KiB of content, even if that is one byte
# repeated.
_SMALLEST_BLOCK: Final = 4
_LARGEST_CONTENT: Final = 128 * 1024


def codec(level: int) -> pa.Codec:
    """Return a compressor with this level; its frames carry the size of their content."""
    return pa.Codec("zstd", compression_level=level)


def decompress(data: bytes | memoryview, size: int) -> bytes:
    """Return the content of a frame.

    Args:
        size: The content's length, as stored with the frame.
    Raises:
        ValueError: The frame has another size, is too short for it, is not a frame, or is damaged.
    """
    if size != _content_size(data):
        raise ValueError(f"a compressed block claims another size than {size} bytes")
    if size > _LARGEST_CONTENT * (len(data) // _SMALLEST_BLOCK):
        raise ValueError(f"{len(data)} compressed bytes cannot hold {size}")
    try:
        content: bytes = _CODEC.decompress(data, decompressed_size=size, asbytes=True)
    except OSError as error:
        raise ValueError(f"a compressed block cannot be read: {error}") from error
    return content


def _content_size(data: bytes | memoryview) -> int | None:
    if bytes(data[:4]) != _MAGIC or len(data) < 5:
        return None
    descriptor = data[4]
    is_single = bool(descriptor & 0x20)
    start = 5 + (not is_single) + _DICTIONARY_BYTES[descriptor & 3]
    width = _SIZE_BYTES[descriptor >> 6] or int(is_single)
    if not width or len(data) < start + width:
        return None
    return int.from_bytes(data[start : start + width], "little") + (256 if width == 2 else 0)


_CODEC: Final = codec(1)
