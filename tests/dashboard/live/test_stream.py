"""A page gets the changes of the tables, also those while it was away."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dashboard.live.stream import differing, event_id, events, versions_of
from dashboard.live.table_poller import TablePoller
from dashboard.reading.snapshots import TableSnapshots
from tests.dashboard.reading.test_snapshots import append


def first(root: Path, last_id: str | None, count: int, *, write: bool = False) -> list[str]:
    async def run() -> list[str]:
        async with TablePoller(TableSnapshots(root), 0.01) as poller:
            stream = events(poller, last_id)
            found = [await anext(stream)]
            if write:
                append(root, "more", 9)
            found += [await anext(stream) for _ in range(count - 1)]
            await stream.aclose()
            return found

    return asyncio.run(asyncio.wait_for(run(), 30))


def test_a_change_is_an_event_with_the_versions_as_its_id(tmp_path: Path) -> None:
    append(tmp_path, "a", 1)
    hello, change = first(tmp_path, None, 2, write=True)
    assert "event: hello" in hello
    assert 'data: {"changed": ["groups"]}' in change
    before, after = (versions_of(text.split("id: ")[1].split()[0])["groups"] for text in (hello, change))
    assert after == before + 1


def test_changes_while_a_page_was_away_come_first(tmp_path: Path) -> None:
    append(tmp_path, "a", 1)
    before = event_id(TableSnapshots(tmp_path).versions)
    append(tmp_path, "b", 2)
    assert '"changed": ["groups"]' in first(tmp_path, before, 2)[1]


@pytest.mark.parametrize(
    "last_id", ["", "x", "groups=1.members", "groups=99999999999999999999", "a=1\nb", "=1" * 9_999]
)
def test_an_invalid_id_means_that_everything_changed(last_id: str, tmp_path: Path) -> None:
    assert versions_of(last_id) == {}
    assert differing(versions_of(last_id), {"groups": 1}) == ["groups"]
