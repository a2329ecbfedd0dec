"""Core: control of Python's cycle collector: paused while many acyclic values are created, and kept off modules.

No I/O.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def makes_no_cycles(function: Callable[P, T]) -> Callable[P, T]:
    """Wrap a function so that it runs with the cycle collector paused.

    The collector scans new objects after every 700 of them, and sometimes all objects, which takes a third of the time
    for a group of thousands of members.
    """

    @functools.wraps(function)
    def call(*args: P.args, **named: P.kwargs) -> T:
        if not gc.isenabled():
            return function(*args, **named)
        gc.disable()
        try:
            return function(*args, **named)
        finally:
            gc.enable()

    return call


@functools.cache
def exempt_loaded_modules() -> None:
    """Exempt everything loaded so far from later collections, once per process.

    PySpark's worker collects everything after each task. The modules of pandas, Arrow and the core have a quarter of a
    million objects, and walking them took 85 % of the workers' computing time in a small batch.
    """
    gc.freeze()
