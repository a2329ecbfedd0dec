"""Dashboard: one poller reads the tables' versions for all open pages."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from anyio import move_on_after
from anyio.to_thread import run_sync

from dashboard.reading.snapshots import TableSnapshots


class TablePoller:
    """Refreshes the snapshots and wakes everything that waits for a change.

    It ends when the running refresh has ended.
    """

    def __init__(self, snapshots: TableSnapshots, interval_s: float) -> None:
        self._snapshots = snapshots
        self._interval_s = interval_s
        self._changed, self._stopping = asyncio.Event(), asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.is_closing = False

    async def __aenter__(self) -> TablePoller:
        self._task = asyncio.create_task(self._poll())
        return self

    async def __aexit__(self, *_: object) -> None:
        # The task is not cancelled: its thread would keep reading, and delta-rs crashes if the interpreter ends in the
        # meantime.
        self._stopping.set()
        if self._task is not None:
            await self._task

    @property
    def versions(self) -> Mapping[str, int]:
        """Return the versions of the last poll."""
        return self._snapshots.versions

    def close(self) -> None:
        """Let every stream end, because the server stops."""
        self.is_closing = True
        self._changed.set()

    async def changed(self, within_s: float) -> bool:
        """Wait until a table changes; return whether one did."""
        return await _is_set(self._changed, within_s)

    async def _poll(self) -> None:
        while not await _is_set(self._stopping, self._interval_s):
            if await run_sync(self._snapshots.refresh):
                woken, self._changed = self._changed, asyncio.Event()
                woken.set()


async def _is_set(event: asyncio.Event, within_s: float) -> bool:
    with move_on_after(within_s):
        await event.wait()
    return event.is_set()
