"""Shell: the requests of one round, a limited number at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from typing import Final

# A round waits less for a server that did not answer in the previous one than for others; its answer may also come
# between two rounds.
PROBE_S: Final = 1.0
# After this many timeouts in a row a server is not queried again in this round.
TIMEOUTS_IN_A_ROW: Final = 3
_WORKERS: Final = 64


async def work(jobs: Iterator[Awaitable[None]], until: float | None) -> None:
    """Run jobs, a limited number at a time, until the loop's time is ``until``; unstarted ones are dropped."""
    loop = asyncio.get_running_loop()

    async def run() -> None:
        while until is None or loop.time() < until:
            job = next(jobs, None)
            if job is None:
                return
            await job

    workers = [asyncio.ensure_future(run()) for _ in range(_WORKERS)]
    try:
        async with asyncio.timeout_at(until):
            await asyncio.gather(*workers)
    except TimeoutError:
        pass  # missing answers are reported as missing
    finally:
        for worker in workers:
            worker.cancel()
