"""Core: NumPy arrays that travel between rooms, by the type of their elements."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

UInt64 = npt.NDArray[np.uint64]
UInt32 = npt.NDArray[np.uint32]
Int64 = npt.NDArray[np.int64]
