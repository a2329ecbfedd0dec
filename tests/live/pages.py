"""The pages over the tables of a job that runs: what a browser shows of a live cluster is what the tables have."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Page, expect

from dashboard.server import DashboardServer
from streaming.settings.model import load
from streaming.terminal.format import queue_name
from tests.browser.conftest import Watch
from tests.browser.page_paths import KINDS, paths
from tests.kit.chromium import chromium
from tests.live.tables import rows_of

WAIT_MS = 120_000  # for a batch, on a busy machine
_OWNERS = '[aria-label="Queues and their owners"]'
_CELLS = "rows => rows.map(row => [...row.cells].slice(0, 3).map(cell => cell.innerText.trim()))"


def server_over(tables: Path, port: int = 0) -> DashboardServer:
    """Return a server of the pages that is not started."""
    return DashboardServer(tables, load(overrides={"dashboard.port": port}).dashboard)


class LivePages:
    """A browser that has one group's page open, over tables that change.

    Args:
        page: Of the browser; watched.
        url: Of the server, without a slash at its end.
        tables: That it serves.
        group: (cluster, group) of the page.
    """

    def __init__(self, page: Page, url: str, tables: Path, group: tuple[str, str]) -> None:
        self._page, self._url, self._tables, self._group = page, url, tables, group
        cluster, name = group
        page.goto(f"{url}/group?{urlencode({'cluster': cluster, 'group': name})}")
        expect(page.locator("#live-state")).to_have_text("live")
        page.evaluate("window.isTheSamePage = true")

    def wait_until_shown(self, members: set[str]) -> None:
        """Return when each queue's owners on the open page are those of the tables, and these members hold them all.

        Raises:
            AssertionError: They were not in time.
        """
        ends = time.monotonic() + WAIT_MS / 1_000
        while (shown := self._shown()) != (held := self._held()) or {span[1] for span in held} != members:
            assert time.monotonic() < ends, (shown, held)
            self._page.wait_for_timeout(200)
        assert self._page.evaluate("window.isTheSamePage") is True

    def every_page(self) -> None:
        """Open one page of each kind."""
        found = paths(self._url)
        assert tuple(found) in (KINDS, tuple(kind for kind in KINDS if kind != "host"))
        for path in found.values():
            answer = self._page.goto(self._url + path)
            assert answer is not None
            assert answer.status < 400, path
            expect(self._page.locator("h1")).to_be_visible()

    def _shown(self) -> set[tuple[str, ...]]:
        """Return queue, computed and reported owner of each row."""
        rows = self._page.locator(f"{_OWNERS} tbody tr").evaluate_all(_CELLS)
        return {tuple(cells) for cells in rows}

    def _held(self) -> set[tuple[str, ...]]:
        """Return the same by the tables."""
        found: dict[str, dict[str, str]] = {}
        for row in rows_of(self._tables, "assignments"):
            if (row["cluster"], row["group_id"], row["valid_to"]) == (*self._group, None):
                queue = queue_name(row["topic"], row["broker"], row["queue_id"])
                found.setdefault(queue, {})[row["origin"]] = row["member_id"]
        return {(queue, owner.get("computed", "–"), owner.get("reported", "–")) for queue, owner in found.items()}


@contextmanager
def live_pages(tables: Path, cluster: str, group: str) -> Iterator[LivePages]:
    """Show a group of a live cluster; afterwards no page has complained, or asked another machine for anything."""
    watch = Watch()
    with server_over(tables).in_background() as server, chromium() as browser:
        page = browser.new_page()
        watch.page(page)
        yield LivePages(page, server.url.rstrip("/"), tables, (cluster, group))
        page.close()
    assert watch.wrong == []
