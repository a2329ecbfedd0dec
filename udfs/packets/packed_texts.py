"""Core: many texts as one compressed value. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec
import numpy as np

from udfs.model.arrays import UInt32
from udfs.packets import zstd

_ZSTD = zstd.codec(1)


class PackedTexts(msgspec.Struct, array_like=True):
    """Concatenated texts, compressed: names of one fleet are very similar.

    Attributes:
        count: The number of texts. size: Bytes of ``data`` before compression.
        data: uint32[count] little-endian, the length of each text in bytes; then all texts in UTF-8.
    """

    count: int
    size: int
    data: bytes

    @classmethod
    def pack(cls, texts: Sequence[str]) -> PackedTexts:
        """Pack texts, in their order."""
        encoded = [text.encode() for text in texts]
        return cls.of_bytes(np.array([len(text) for text in encoded], np.uint32), b"".join(encoded))

    @classmethod
    def of_bytes(cls, lengths: UInt32, content: bytes | memoryview) -> PackedTexts:
        """Pack texts that are concatenated in UTF-8."""
        data = b"".join([lengths.astype("<u4", copy=False).tobytes(), content])
        return cls(len(lengths), len(data), _ZSTD.compress(data, asbytes=True))

    def unpack(self) -> list[str]:
        """Return all texts."""
        data = zstd.decompress(self.data, self.size)
        start = 4 * self.count
        bounds = [start, *(start + np.cumsum(np.frombuffer(data, "<u4", self.count), dtype=np.int64)).tolist()]
        return [data[start:end].decode() for start, end in pairwise(bounds)]
