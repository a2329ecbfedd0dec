"""Time that passes for an event loop when a test lets it, so that no limit is raced."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


def pass_time(seconds: float) -> None:
    """Advance the running loop's time at once: every wait that is no longer than this ends."""
    loop = asyncio.get_running_loop()
    real: Callable[[], float] = loop.time
    loop.time = lambda: real() + seconds  # type: ignore[method-assign]


async def until(claim: Callable[[], object]) -> None:
    """Return as soon as a claim holds."""
    while not claim():
        await asyncio.sleep(0.001)
