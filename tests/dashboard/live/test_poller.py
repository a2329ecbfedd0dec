"""One poller wakes all who wait."""

from __future__ import annotations

import asyncio
from pathlib import Path

from dashboard.live.poller import Poller
from dashboard.reading.snapshots import TableSnapshots
from tests.dashboard.reading.test_snapshots import append


def test_a_commit_wakes_every_waiting_page(tmp_path: Path) -> None:
    append(tmp_path, "a", 1)

    async def run() -> list[bool]:
        async with Poller(TableSnapshots(tmp_path), 0.01) as poller:
            waiting = [asyncio.create_task(poller.changed(30)) for _ in range(50)]
            await asyncio.sleep(0)
            append(tmp_path, "b", 2)
            found = await asyncio.gather(*waiting)
            assert poller.versions["groups"] == 2
            return found

    assert asyncio.run(run()) == [True] * 50


def test_without_a_commit_waiting_ends(tmp_path: Path) -> None:
    append(tmp_path, "a", 1)

    async def run() -> bool:
        async with Poller(TableSnapshots(tmp_path), 0.01) as poller:
            return await poller.changed(0.05)

    assert asyncio.run(run()) is False
