"""Core: rarely read values, encoded and compressed in blocks of neighbouring keys. No I/O.

Each value has a 64-bit key. Values are sorted by key, about 64 to a block; a block is decompressed
only when one of its values is read, and compressed again only when one of them changed.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping

import msgspec
import numpy as np

from udfs.model.arrays import Int64, UInt64, find_sorted
from udfs.model.errors import StateDamagedError
from udfs.packets import zstd
from udfs.shard.state_format import Buffer, must_hold, pack_column, pack_parts, refusing, unpack_column, unpack_parts

BLOCK_VALUES = 64  # a block with more than twice this many is split
# Measured with groups of ten described members: 8.4 bytes a member at level 9, 9.4 at level 3, 12.1 with zlib's
# level 6, which takes twice the time of level 9.
_ZSTD = zstd.codec(9)
# A group of thousands of members is mostly member ids; level 9 takes five times as long there and saves 1 %.
_LARGE_VALUE = 128 * 1024
_ZSTD_OF_LARGE = zstd.codec(1)
_LEAD = struct.Struct("<II")  # length of a block before compression, its CRC-32


class BlockStore:
    """A sorted map from 64-bit keys to byte strings.

    Attributes:
        keys: Ascending, distinct.
    """

    def __init__(self, data: Buffer = b"") -> None:
        keys, sizes, lengths, body = unpack_parts(data, 4)
        self.keys: UInt64 = np.frombuffer(keys, dtype="<u8").astype(np.uint64, copy=False)
        self._sizes: list[int] = unpack_column(sizes).tolist()
        self._blocks: list[Buffer] = []
        must_hold(len(self._sizes) <= len(self.keys), "more blocks than values")
        start = 0
        for length in unpack_column(lengths, len(self._sizes)).tolist():
            self._blocks.append(body[start : start + max(0, length)])
            start += max(0, length)
        self._ends = np.cumsum(np.asarray(self._sizes, dtype=np.int64))
        self._opened: dict[int, list[bytes]] = {}
        if start != len(body) or sum(self._sizes) != len(self.keys):
            raise StateDamagedError("the state's blocks do not match their keys: it is damaged")

    def encode(self) -> bytes:
        """Return bytes that decode to an equal map."""
        if not len(self.keys):
            return b""
        lengths = np.asarray([len(block) for block in self._blocks], dtype=np.int64)
        sizes = np.asarray(self._sizes, dtype=np.int64)
        keys = self.keys.astype("<u8", copy=False).tobytes()
        return pack_parts(keys, pack_column(sizes), pack_column(lengths), b"".join(self._blocks))

    def find(self, keys: UInt64) -> Int64:
        """Return the position of each key, −1 for absent keys."""
        return find_sorted(self.keys, keys)

    def read(self, position: int) -> bytes:
        """Return the value at a position. Positions in ascending order open each block once."""
        block = int(np.searchsorted(self._ends, position, side="right"))
        if block not in self._opened:
            self._opened = {block: self._open(block)}
        return self._opened[block][position - int(self._ends[block]) + self._sizes[block]]

    def write(self, values: Mapping[int, bytes]) -> Int64:
        """Set the values of these keys, present or not.

        Returns: for each new key, ascending, its position in the old order, in the form that ``numpy.insert`` takes, to
            extend parallel columns.
        """
        if not values:
            return np.empty(0, dtype=np.int64)
        keys = np.sort(np.fromiter(values, dtype=np.uint64, count=len(values)))
        positions = np.searchsorted(self.keys, keys)
        there = self.find(keys) >= 0
        if not self._blocks:
            self._blocks, self._sizes, self._ends = [self._close([])], [0], np.zeros(1, dtype=np.int64)
        owners = np.minimum(np.searchsorted(self._ends, positions, side="right"), len(self._blocks) - 1)
        blocks: list[Buffer] = []
        sizes: list[int] = []
        edges = np.searchsorted(owners, np.arange(len(self._blocks) + 1))
        for block, (first, last) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)):
            if first == last:
                blocks.append(self._blocks[block])
                sizes.append(self._sizes[block])
                continue
            records = self._opened.get(block) or self._open(block)
            begin = int(self._ends[block]) - self._sizes[block]
            merged: list[bytes] = []
            taken = 0
            for at in range(first, last):
                position = int(positions[at]) - begin
                merged.extend(records[taken:position])
                merged.append(values[int(keys[at])])
                taken = position + int(there[at])
            merged.extend(records[taken:])
            step = BLOCK_VALUES if len(merged) > 2 * BLOCK_VALUES else len(merged)
            for start in range(0, len(merged), step):
                blocks.append(self._close(merged[start : start + step]))
                sizes.append(len(merged[start : start + step]))
        self._blocks, self._sizes, self._opened = blocks, sizes, {}
        self._ends = np.cumsum(np.asarray(sizes, dtype=np.int64))
        inserted = np.asarray(positions[~there])
        self.keys = np.insert(self.keys, inserted, keys[~there])
        return inserted

    def _open(self, block: int) -> list[bytes]:
        data = self._blocks[block]
        with refusing("a block of the state"):
            length, checksum = _LEAD.unpack_from(data)
            content = zstd.decompress(data[_LEAD.size :], length)
            must_hold(zlib.crc32(content) == checksum, "a block differs from what was written")
            values = msgspec.msgpack.decode(content, type=list[bytes])
            must_hold(len(values) == self._sizes[block], "a block has a wrong number of values")
        return values

    @staticmethod
    def _close(values: list[bytes]) -> bytes:
        data = msgspec.msgpack.encode(values)
        codec = _ZSTD_OF_LARGE if max(map(len, values), default=0) > _LARGE_VALUE else _ZSTD
        return _LEAD.pack(len(data), zlib.crc32(data)) + bytes(codec.compress(data, asbytes=True))
