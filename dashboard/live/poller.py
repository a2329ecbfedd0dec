"""Dashboard: one poller reads the tables' versions for all open pages."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from anyio.to_thread import run_sync

from dashboard.reading.snapshots import TableSnapshots


class Poller:
    """Refreshes the snapshots and wakes whoever waits for a change.

    Args:
        snapshots: Of the tables.
        interval_s: Between two polls.
    """

    def __init__(self, snapshots: TableSnapshots, interval_s: float) -> None:
        self._snapshots = snapshots
        self._interval_s = interval_s
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.is_closing = False

    async def __aenter__(self) -> Poller:
        self._task = asyncio.create_task(self._poll())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    @property
    def versions(self) -> Mapping[str, int]:
        """Return the versions of the last poll."""
        return self._snapshots.versions

    def close(self) -> None:
        """Let every stream end: the server stops."""
        self.is_closing = True
        self._changed.set()

    async def changed(self, within_s: float) -> bool:
        """Wait until a table changes; return whether one did."""
        event = self._changed
        try:
            async with asyncio.timeout(within_s):
                await event.wait()
        except TimeoutError:
            return False
        return True

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(self._interval_s)
            if await run_sync(self._snapshots.refresh):
                woken, self._changed = self._changed, asyncio.Event()
                woken.set()
