"""Core: observations of queues that wait for the clock, as bytes. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from udfs.model.observations import UNKNOWN
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

# One waiting row: key of the queue, time, offset, end, position, whether it is a commit, and a message with its time,
# which exports of 0.2.0 lack.
Waiting: TypeAlias = tuple[int | bool, ...]

_KEY_BYTES = 8


def read_waiting(data: Buffer) -> ProgressColumns:
    """Decode what ``pack_waiting`` wrote."""
    groups, queues, *others = unpack_parts(data, data[0] if len(data) else 9)
    must_hold(len(others) in (5, 7), "waiting commits are incomplete")
    keys = widen(groups, _KEY_BYTES), widen(queues, _KEY_BYTES)
    must_hold(len(keys[0]) == len(keys[1]), "waiting commits are incomplete")
    columns = [unpack_column(part, len(keys[0])) for part in others]
    columns += [np.full(len(keys[0]), UNKNOWN, np.int64)] * (7 - len(columns))
    times, offsets, ends, positions, commits, written, written_times = columns
    return ProgressColumns(*keys, times, offsets, ends, positions, commits > 0, written, written_times)


def pack_waiting(waiting: ProgressColumns) -> bytes:
    """Encode waiting observations."""
    if not len(waiting.times):
        return b""
    keys = (narrow(waiting.groups, _KEY_BYTES), narrow(waiting.queues, _KEY_BYTES))
    has_written = (waiting.written_offsets != UNKNOWN).any()
    columns = (*waiting[2:6], waiting.commits.astype(np.int64), *(waiting[7:] if has_written else ()))
    return pack_parts(*keys, *map(pack_column, columns))


def waiting_columns(group: int, waiting: Sequence[Waiting]) -> ProgressColumns:
    """Return the rows of a group as columns."""
    values = np.array([(*row, UNKNOWN, UNKNOWN)[:8] for row in waiting], object).reshape(-1, 8).T
    kinds: tuple[type[np.generic], ...] = (np.uint64, *[np.int64] * 4, np.bool_, *[np.int64] * 2)
    columns = (column.astype(kind) for column, kind in zip(values, kinds, strict=True))
    return ProgressColumns._make([np.full(len(waiting), group, np.uint64), *columns])
