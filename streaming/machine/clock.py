"""Shell: the time on this machine."""

from __future__ import annotations

import time


def now_ms() -> int:
    """Return the wall clock, in epoch milliseconds."""
    return time.time_ns() // 1_000_000
