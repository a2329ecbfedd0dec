"""Core: observations of queues that wait for the clock, as bytes. No I/O."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from udfs.packets.progress_columns import ProgressColumns
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

# One waiting row: key of the queue, time, offset, end, position, whether it is a commit.
Waiting: TypeAlias = tuple[int, int, int, int, int, bool]

_KEY_BYTES = 8


def read_waiting(data: Buffer) -> ProgressColumns:
    """Decode what ``pack_waiting`` wrote."""
    groups, queues, *others = unpack_parts(data, 7)
    keys = widen(groups, _KEY_BYTES), widen(queues, _KEY_BYTES)
    must_hold(len(keys[0]) == len(keys[1]), "waiting commits are incomplete")
    times, offsets, ends, positions, commits = (unpack_column(part, len(keys[0])) for part in others)
    return ProgressColumns(*keys, times, offsets, ends, positions, commits > 0)


def pack_waiting(waiting: ProgressColumns) -> bytes:
    """Encode waiting observations."""
    if not len(waiting.times):
        return b""
    keys = (narrow(waiting.groups, _KEY_BYTES), narrow(waiting.queues, _KEY_BYTES))
    return pack_parts(*keys, *(pack_column(column) for column in (*waiting[2:6], waiting.commits.astype(np.int64))))
