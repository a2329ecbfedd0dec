"""Core: NumPy arrays that travel between rooms, by the type of their elements, and how keys are found in them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

UInt64 = npt.NDArray[np.uint64]
UInt32 = npt.NDArray[np.uint32]
Int64 = npt.NDArray[np.int64]


def distinct(keys: UInt64) -> UInt64:
    """Return the distinct keys, ascending; ``np.unique`` hashes them, which takes ten times as long."""
    ordered = np.sort(keys)
    return np.asarray(ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]])


def find_sorted(sorted_keys: UInt64, keys: UInt64) -> Int64:
    """Return the position of each key among sorted keys, −1 for absent keys."""
    if not len(sorted_keys):
        return np.full(len(keys), -1, dtype=np.int64)
    positions = np.searchsorted(sorted_keys, keys)
    clipped = np.minimum(positions, len(sorted_keys) - 1)
    return np.asarray(np.where(sorted_keys[clipped] == keys, clipped, -1))
