"""Core: end offsets that wait for the clock, shared by all groups. No I/O."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.model.arrays import Int64, UInt64
from udfs.model.observations import UNKNOWN
from udfs.shard.state_format import (
    Buffer,
    must_hold,
    narrow,
    pack_column,
    pack_parts,
    unpack_column,
    unpack_parts,
    widen,
)

_KEY_BYTES = 8


class Ends(NamedTuple):
    """End offsets, shared by all groups: keys of queues, times, offsets, and where their logs begin."""

    queues: UInt64
    times: Int64
    ends: Int64
    starts: Int64

    @staticmethod
    def read(data: Buffer) -> Ends:
        """Decode what ``encode`` wrote."""
        queues, *others = unpack_parts(data, data[0] if len(data) else 3)
        must_hold(len(others) in (2, 3), "waiting end offsets are incomplete")
        keys = widen(queues, _KEY_BYTES)
        columns = [unpack_column(part, len(keys)) for part in others]
        return Ends(keys, *columns, *([] if len(columns) == 3 else [np.full(len(keys), UNKNOWN)]))

    def encode(self) -> bytes:
        """Return these ends as bytes."""
        if not len(self.times):
            return b""
        columns = self[1:] if (self.starts != UNKNOWN).any() else self[1:3]
        return pack_parts(narrow(self.queues, _KEY_BYTES), *map(pack_column, columns))
