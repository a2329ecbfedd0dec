"""Bench: what processes have computed, and what calls in this one took."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import psutil


def computed_s(counted: Callable[[psutil.Process], bool] = lambda _process: True) -> float:
    """Return what this process and those below it have computed; those that ended are counted by their parents.

    Args:
        counted: Which of them.
    """
    mine = psutil.Process()
    total = 0.0
    for process in [mine, *mine.children(recursive=True)]:
        try:
            if counted(process):
                times = process.cpu_times()
                # Those that are still there are counted by themselves.
                ended = 0.0 if process == mine else times.children_user + times.children_system
                total += times.user + times.system + ended
        except psutil.Error:
            continue
    return total


def is_below(process: psutil.Process) -> bool:
    """Return whether this process has started another one."""
    return process != psutil.Process()


@contextmanager
def seconds_of(owner: type, name: str) -> Iterator[list[tuple[float, float]]]:
    """Collect when a method was called, in epoch ms, and for how many seconds."""
    calls: list[tuple[float, float]] = []
    real = getattr(owner, name)

    def timed(*args: Any) -> Any:
        at, begin = now_ms(), time.perf_counter()
        try:
            return real(*args)
        finally:
            calls.append((at, time.perf_counter() - begin))

    with patch.object(owner, name, timed):
        yield calls


def now_ms() -> int:
    """Return the wall clock, in epoch milliseconds."""
    return time.time_ns() // 1_000_000
