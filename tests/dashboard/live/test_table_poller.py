"""One poller wakes all who wait."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from dashboard.live.table_poller import TablePoller
from dashboard.reading.snapshots import TableSnapshots
from tests.dashboard.reading.test_snapshots import append


def test_a_commit_wakes_every_waiting_page(tmp_path: Path) -> None:
    append(tmp_path, "a", 1)

    async def run() -> list[bool]:
        async with TablePoller(TableSnapshots(tmp_path), 0.01) as poller:
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
        async with TablePoller(TableSnapshots(tmp_path), 0.01) as poller:
            return await poller.changed(0.05)

    assert asyncio.run(run()) is False


def test_it_ends_only_after_the_refresh_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append(tmp_path, "a", 1)
    snapshots, began, may_end, reading = TableSnapshots(tmp_path), threading.Event(), threading.Event(), list[str]()

    def refresh() -> bool:
        reading.append("one")
        began.set()
        may_end.wait()
        reading.clear()
        return False

    async def end_later() -> None:
        # The loop comes round often enough for one that does not wait for the refresh to be left before.
        for _ in range(100):
            await asyncio.sleep(0)
        may_end.set()

    async def run() -> list[str]:
        async with TablePoller(snapshots, 0.01):
            await asyncio.to_thread(began.wait)
            ending = asyncio.create_task(end_later())
        left_with = list(reading)
        await ending
        return left_with

    monkeypatch.setattr(snapshots, "refresh", refresh)
    assert asyncio.run(run()) == []
