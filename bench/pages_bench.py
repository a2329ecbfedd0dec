"""Bench: the pages over large tables, in Chromium: first paint, frames of the swimlane, memory, cost of open pages.

10,000 groups, 1,000,000 rows of assignments; one group has 1,000 queues and 5,000 spans. The server is another process.
Times are by the clock: other work on the machine is in them.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import ProxyHandler, build_opener

import psutil
from playwright.sync_api import Browser, Page

from bench.pages_tables import LARGE, PagesFleet, write_tables
from tests.kit.chromium import chromium

GOAL_PAINT_MS = 1_000
GOAL_FRAMES = 30
REQUESTS = 1_000
OPEN_PAGES = 50
_VISITS = 5
_PAN_S = 4.0
_WATCHED_S = 10.0
_OPENER = build_opener(ProxyHandler({}))
# How many frames a pan of the whole timeline, all lanes in view, is given in its time.
_PAN = """(seconds) => new Promise((done) => {
  const lanes = document.querySelector("[data-lanes]").lanes, begin = performance.now();
  lanes.fit(); lanes.zoom(0.5);
  let frames = 0;
  const step = (now) => {
    frames += 1;
    lanes.pan((frames % 40 < 20 ? 1 : -1) * 0.02); lanes.paint();
    if (now - begin < seconds * 1000) requestAnimationFrame(step); else done(frames / (now - begin) * 1000);
  };
  requestAnimationFrame(step);
})"""


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory(prefix="pages-bench-") as folder, ExitStack() as stack:
        fleet = PagesFleet()
        write_tables(fleet, Path(folder))
        program = "from streaming.commands import main; main()"
        command = [sys.executable, "-c", program, "serve", "--tables", folder, "--port", "0"]
        settings = {"REBALANCE_MONITOR_DASHBOARD__REQUESTS_PER_SECOND": "100000"}
        server = stack.enter_context(
            subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | settings)
        )
        stack.callback(server.terminate)
        assert server.stderr is not None
        url = server.stderr.readline().split()[1].rstrip("/")
        threading.Thread(target=server.stderr.read, daemon=True).start()
        browser = stack.enter_context(chromium())
        _paints(browser, url, fleet)
        _frames(browser, url, fleet)
        _memory(server.pid, url, fleet)
        _open_pages(server.pid, url)


def _paths(fleet: PagesFleet, number: int) -> dict[str, str]:
    group = {"cluster": fleet.cluster(number), "group": fleet.group(number)}
    large = {"cluster": fleet.cluster(0), "group": LARGE}
    return {
        "groups": f"/?q=group-{number:05d}"[: 6 + number % 5],
        "group": f"/group?{urlencode(group)}",
        "large group": f"/group?{urlencode(large)}",
        "rebalances": f"/rebalances?trigger={('member_joined', 'member_left')[number % 2]}&page={number % 7 + 1}",
        "rebalance": f"/rebalance?id={number:032x}",
        "member": f"/member?{urlencode({'member': f'consumer-{number % 10}'})}",
        "members": f"/members?page={number % 50 + 1}",
        "findings": f"/findings?page={number % 20 + 1}",
        "rejected events": f"/rejected-events?page={number % 50 + 1}",
        "job": "/job",
    }


def _first_paint(page: Page, address: str) -> float:
    page.goto(address)
    page.wait_for_timeout(50)
    entries: list[float] = page.evaluate("performance.getEntriesByName('first-contentful-paint').map(e => e.startTime)")
    return entries[0]


def _paints(browser: Browser, url: str, fleet: PagesFleet) -> None:
    for name in _paths(fleet, 1):
        times = []
        for visit in range(_VISITS):
            context = browser.new_context()
            times.append(_first_paint(context.new_page(), url + _paths(fleet, visit * 31 + 1)[name]))
            context.close()
        _print(
            f"first paint of {name}: median {statistics.median(times):.0f} ms, longest {max(times):.0f} ms"
            f" (goal {GOAL_PAINT_MS})"
        )


def _frames(browser: Browser, url: str, fleet: PagesFleet) -> None:
    page = browser.new_context(viewport={"width": 1360, "height": 900}).new_page()
    page.goto(url + _paths(fleet, 1)["large group"])
    page.locator("[data-lanes][data-drawn]").wait_for()
    frames = page.evaluate(_PAN, _PAN_S)
    spans = page.locator("[data-lanes]").get_attribute("data-drawn")
    _print(
        f"swimlane of 1,000 queues and {spans} spans, all in view: {frames:.0f} frames a second (goal {GOAL_FRAMES})"
    )
    page.context.close()


def _get(address: str) -> None:
    with _OPENER.open(address, timeout=60) as answer:
        answer.read()


def _memory(pid: int, url: str, fleet: PagesFleet) -> None:
    process = psutil.Process(pid)
    sizes = []
    for number in range(REQUESTS):
        paths = list(_paths(fleet, number).values())
        _get(url + paths[number % len(paths)])
        if number % 250 == 249:
            sizes.append(process.memory_info().rss / 1e6)
    _print(f"memory after 250, 500, 750, 1,000 requests: {', '.join(f'{size:.0f}' for size in sizes)} MB")
    _print(f"memory after {REQUESTS:,} requests / after half of them: {sizes[-1] / sizes[1]:.2f} (goal 1)")


def _open_pages(pid: int, url: str) -> None:
    """Streams that are open while nothing changes: what they cost the server; the job is not asked at all."""
    process = psutil.Process(pid)

    def used() -> float:
        times = process.cpu_times()
        return times.user + times.system

    def over(seconds: float) -> float:
        before = used()
        time.sleep(seconds)
        return (used() - before) / seconds

    alone = over(_WATCHED_S)
    with ExitStack() as stack:
        for _ in range(OPEN_PAGES):
            stack.enter_context(_OPENER.open(f"{url}/live", timeout=60))
        watched = over(_WATCHED_S)
    _print(f"computing of the server with {OPEN_PAGES} open pages: {watched:.3f} s a second; with none: {alone:.3f}")


def _print(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
