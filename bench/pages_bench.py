"""Bench: the pages over large tables, in Chromium: first paint, frames of the swimlane, memory, cost of open pages.

10,000 groups, 1,000,000 rows of assignments; one group has 1,000 queues and 5,000 spans, another 50,000 spans. The
server is another process. Times are by the clock: other work on the machine is in them, so the load is beside them, and
the server's own computing, which load changes little.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode
from urllib.request import ProxyHandler, build_opener

import psutil
from playwright.sync_api import Browser, Page

from bench.pages_tables import CROWDED, LARGE, PagesFleet, write_tables
from tests.kit.chromium import chromium

GOAL_PAINT_MS = 1_000
GOAL_FRAMES = 30
REQUESTS = int(os.environ.get("BENCH_REQUESTS", "1000"))
OPEN_PAGES = 50
_VISITS = int(os.environ.get("BENCH_ROUNDS", "5"))
_PATIENCE_MS = 300_000
_PAN_S = 4.0
_WATCHED_S = 10.0
_OPENER = build_opener(ProxyHandler({}))
# How many frames a pan is given in its time: with all lanes in view, or with lanes that can be read.
_PAN = """([seconds, all]) => new Promise((done) => {
  const lanes = document.querySelector("[data-lanes]").lanes, begin = performance.now();
  if (all) lanes.fit();
  lanes.zoom(0.5);
  let frames = 0;
  const painting = [];
  const step = (now) => {
    frames += 1;
    const before = performance.now();
    lanes.pan((frames % 40 < 20 ? 1 : -1) * 0.02); lanes.paint();
    painting.push(performance.now() - before);
    if (now - begin < seconds * 1000) requestAnimationFrame(step);
    else done([frames / (now - begin) * 1000, lanes.rects, painting.sort((a, b) => a - b)[frames >> 1]]);
  };
  requestAnimationFrame(step);
})"""
_PAINTS = """() => new Promise((done) => {
  const first = performance.getEntriesByName("first-contentful-paint").map((entry) => entry.startTime)[0] ?? null;
  const largest = new PerformanceObserver((list) => done([first, list.getEntries().at(-1).startTime]));
  largest.observe({ type: "largest-contentful-paint", buffered: true });
  setTimeout(() => done([first, null]), 5000);
})"""


class Server(NamedTuple):
    """A server in another process."""

    pid: int
    url: str

    def used_s(self) -> float:
        """Return how much it has computed."""
        times = psutil.Process(self.pid).cpu_times()
        return times.user + times.system


class Visit(NamedTuple):
    """What one visit of a page took, in ms, and its bytes; ``largest_ms`` and ``drawn_ms`` with its charts."""

    first_ms: float
    largest_ms: float
    drawn_ms: float
    computing_ms: float
    size: int


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory(prefix="pages-bench-") as folder, ExitStack() as stack:
        fleet = PagesFleet()
        write_tables(fleet, Path(folder))
        browser = stack.enter_context(chromium())
        _cold(browser, folder, fleet)
        server = stack.enter_context(serving(folder))
        _warm(browser, server, fleet)
        for name, group in (("5,000", LARGE), ("50,000", CROWDED)):
            _frames(browser, server, fleet, name, group)
        _memory(server, fleet)
        _open_pages(server)


@contextmanager
def serving(folder: str) -> Iterator[Server]:
    """Serve tables from another process while the context is open."""
    program = "from streaming.commands import main; main()"
    command = [sys.executable, "-c", program, "serve", "--tables", folder, "--port", "0"]
    prefix = "REBALANCE_MONITOR_DASHBOARD__"
    # A busy machine must not end the measurement.
    settings = {f"{prefix}REQUESTS_PER_SECOND": "100000", f"{prefix}QUERY_TIMEOUT_MS": str(_PATIENCE_MS)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | settings) as process:
        try:
            assert process.stderr is not None
            url = process.stderr.readline().split()[1].rstrip("/")
            threading.Thread(target=process.stderr.read, daemon=True).start()
            yield Server(process.pid, url)
        finally:
            process.terminate()


def _paths(fleet: PagesFleet, number: int) -> dict[str, str]:
    def group(place: int) -> str:
        return f"/group?{urlencode({'cluster': fleet.cluster(place), 'group': fleet.group(place)})}"

    # Groups of Kafka, RocketMQ and MetaQ come one after the other.
    kinds = {f"group of {fleet.cluster(place).split('-')[0]}": group(3 * number + place) for place in range(3)}
    return {
        "groups": f"/?q=group-{number:05d}"[: 6 + number % 5],
        **kinds,
        "group of 5,000 spans": group(0),
        "group of 50,000 spans": group(1),
        "topic of all groups": f"/topic?{urlencode({'cluster': fleet.cluster(number), 'topic': 'orders'})}",
        "rebalances": f"/rebalances?trigger={('member_joined', 'member_left')[number % 2]}&page={number % 7 + 1}",
        "rebalance": f"/rebalance?id={number:032x}",
        "member of 10,000 groups": f"/member?{urlencode({'member': f'consumer-{number % 10}'})}",
        "members": f"/members?page={number % 50 + 1}",
        "findings": f"/findings?page={number % 20 + 1}",
        "rejected events": f"/rejected-events?page={number % 50 + 1}",
        "questions": "/questions",
        "a question": f"/questions/most-rebalances?limit={number % 50 + 50}",
        "job": "/job",
    }


def _visit(browser: Browser, server: Server, path: str) -> Visit:
    page = browser.new_context(viewport={"width": 1360, "height": 900}).new_page()
    before = server.used_s()
    answer = page.goto(server.url + path, timeout=_PATIENCE_MS)
    assert answer is not None
    for place in page.locator("[data-chart], [data-lanes]").all():
        place.and_(page.locator("[data-drawn]")).wait_for(timeout=_PATIENCE_MS)
    drawn: float = page.evaluate("performance.now()")
    first, largest = page.evaluate(_PAINTS)
    found = Visit(first, largest or first, drawn, (server.used_s() - before) * 1_000, len(answer.body()))
    page.context.close()
    return found


def _cold(browser: Browser, folder: str, fleet: PagesFleet) -> None:
    print("| page, first request of its server | first paint | largest paint | computing | load |")
    for name, path in _paths(fleet, 1).items():
        with serving(folder) as server:
            visit = _visit(browser, server, path)
        figures = f"{visit.first_ms:.0f} ms | {visit.largest_ms:.0f} ms | {visit.computing_ms:.0f} ms"
        print(f"| {name} | {figures} | {_load()} |")


def _warm(browser: Browser, server: Server, fleet: PagesFleet) -> None:
    print(
        f"| page, median of {_VISITS} addresses (goal {GOAL_PAINT_MS} ms) | first paint | longest | largest paint |"
        " charts drawn | computing | bytes | load |"
    )
    for name in _paths(fleet, 1):
        found = [_visit(browser, server, _paths(fleet, visit * 31 + 2)[name]) for visit in range(_VISITS)]
        first, largest, drawn, computing, size = (statistics.median(column) for column in zip(*found, strict=True))
        print(
            f"| {name} | {first:.0f} ms | {max(visit.first_ms for visit in found):.0f} ms | {largest:.0f} ms |"
            f" {drawn:.0f} ms | {computing:.0f} ms | {size:,.0f} | {_load()} |"
        )


def _frames(browser: Browser, server: Server, fleet: PagesFleet, name: str, group: str) -> None:
    cluster = fleet.cluster(0 if group == LARGE else 1)
    for is_all in (True, False):
        page: Page = browser.new_context(viewport={"width": 1360, "height": 900}).new_page()
        page.goto(f"{server.url}/group?{urlencode({'cluster': cluster, 'group': group})}", timeout=_PATIENCE_MS)
        page.locator("[data-lanes][data-drawn]").wait_for(timeout=_PATIENCE_MS)
        frames, rects, painting = page.evaluate(_PAN, [_PAN_S, is_all])
        print(
            f"timeline of 1,000 queues and {name} spans, {'all lanes' if is_all else 'lanes that can be read'}:"
            f" {frames:.0f} frames a second (goal {GOAL_FRAMES}), {rects:,} spans each,"
            f" painted in {painting:.1f} ms at the median; load {_load()}"
        )
        page.context.close()


def _get(address: str) -> None:
    with _OPENER.open(address, timeout=_PATIENCE_MS / 1_000) as answer:
        answer.read()


def _memory(server: Server, fleet: PagesFleet) -> None:
    process = psutil.Process(server.pid)
    sizes = []
    for number in range(REQUESTS):
        paths = list(_paths(fleet, number).values())
        _get(server.url + paths[number % len(paths)])
        if number % (REQUESTS // 4) == REQUESTS // 4 - 1:
            sizes.append(process.memory_info().rss / 1e6)
    print(f"memory after each quarter of {REQUESTS:,} requests: {', '.join(f'{size:.0f}' for size in sizes)} MB")
    print(f"memory after all of them / after half: {sizes[-1] / sizes[1]:.2f} (goal 1); load {_load()}")


def _open_pages(server: Server) -> None:
    """Streams that are open while nothing changes: what they cost the server; the job is not asked at all."""

    def over(seconds: float) -> float:
        before = server.used_s()
        time.sleep(seconds)
        return (server.used_s() - before) / seconds

    alone = over(_WATCHED_S)
    with ExitStack() as stack:
        for _ in range(OPEN_PAGES):
            stack.enter_context(_OPENER.open(f"{server.url}/live", timeout=60))
        watched = over(_WATCHED_S)
    print(f"computing of the server with {OPEN_PAGES} open pages: {watched:.3f} s a second; with none: {alone:.3f}")


def _load() -> str:
    return f"{os.getloadavg()[0]:.0f}"
