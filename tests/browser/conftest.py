"""One browser for all tests of the pages; every page that it shows is watched for errors and foreign requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, expect

from dashboard.server import DashboardServer
from streaming.settings.model import load
from tests.browser.day_tables import write_day, write_hostile
from tests.kit.chromium import chromium

# A busy machine may need longer for a page than Playwright's own limit of five seconds.
expect.set_options(timeout=60_000)
VIEWPORT: ViewportSize = {"width": 1360, "height": 900}


# Not for the session: while it runs, no other test of the process could start an event loop.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with chromium() as chrome:
        yield chrome


@pytest.fixture(scope="session")
def day(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("day")
    write_day(root)
    return root


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("hostile")
    write_hostile(root)
    return root


# Not for the session either: each server looks at its tables ten times a second, also when no test asks it.
@pytest.fixture(scope="package")
def serve() -> Iterator[Callable[..., DashboardServer]]:
    """Serve tables until the tests of the pages end."""
    with ExitStack() as stack:

        def start(root: Path, port: int = 0, token: str = "") -> DashboardServer:
            overrides = {"dashboard.port": port, "dashboard.poll_interval_ms": 100, "dashboard.token": token}
            server = DashboardServer(
                root, load(overrides=overrides | {"dashboard.requests_per_second": 10_000}).dashboard
            )
            return stack.enter_context(server.in_background())

        yield start


@pytest.fixture(scope="package")
def day_url(serve: Callable[..., DashboardServer], day: Path) -> str:
    return serve(day).url.rstrip("/")


TOKEN = "a-token-that-only-tests-have"


@pytest.fixture(scope="package")
def guarded_url(serve: Callable[..., DashboardServer], day: Path) -> str:
    """Serve the day to those who have ``TOKEN``."""
    return serve(day, token=TOKEN).url.rstrip("/")


@pytest.fixture(scope="package")
def hostile_url(serve: Callable[..., DashboardServer], hostile: Path) -> str:
    return serve(hostile).url.rstrip("/")


class Watch:
    """Record what no page may do: complaints on the console, errors, dialogs, requests to other servers."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.allows_lost_connections = False
        self.allows_refusals = False
        self.allows_unreadable_tables = False

    def page(self, page: Page) -> Callable[[], None]:
        """Watch a page; return what ends that."""
        listeners: dict[str, Callable[[Any], object]] = {
            "console": lambda message: self._console(message.type, message.text),
            "pageerror": lambda error: self.wrong.append(str(error)),
            "dialog": lambda dialog: (self.wrong.append(dialog.message), dialog.dismiss()),
            "request": lambda request: None if "://127.0.0.1:" in request.url else self.wrong.append(request.url),
        }
        for event, listener in listeners.items():
            page.on(event, listener)  # type: ignore[call-overload]

        def end() -> None:
            for event, listener in listeners.items():
                page.remove_listener(event, listener)

        return end

    def _console(self, kind: str, text: str) -> None:
        is_lost = self.allows_lost_connections and "net::ERR_" in text
        is_refused = self.allows_refusals and "the server responded with a status of 4" in text
        is_unreadable = self.allows_unreadable_tables and "the server responded with a status of 503" in text
        if kind in ("error", "warning") and not is_lost and not is_refused and not is_unreadable:
            self.wrong.append(text)


@pytest.fixture
def watch() -> Iterator[Watch]:
    watch = Watch()
    yield watch
    assert watch.wrong == []


@pytest.fixture
def open_context(browser: Browser, watch: Watch) -> Iterator[Callable[..., BrowserContext]]:
    """Open contexts of the browser, each with a theme, a size, a time zone of its own."""
    with ExitStack() as stack:

        def start(**options: object) -> BrowserContext:
            context: BrowserContext = stack.enter_context(browser.new_context(**options))  # type: ignore[arg-type]
            context.on("page", watch.page)
            return context

        yield start


@pytest.fixture
def page(open_context: Callable[..., BrowserContext]) -> Page:
    return open_context(viewport=VIEWPORT, timezone_id="Asia/Tokyo").new_page()


@pytest.fixture(scope="package")
def _kept_page(browser: Browser) -> Iterator[Page]:
    with browser.new_context(viewport=VIEWPORT, timezone_id="Asia/Tokyo") as context:
        yield context.new_page()


@pytest.fixture
def kept_page(_kept_page: Page, watch: Watch) -> Iterator[Page]:
    """Lend one page to all tests that only open addresses and read: a process of the browser costs half a second."""
    end = watch.page(_kept_page)
    _kept_page.emulate_media(color_scheme="light")
    _kept_page.set_viewport_size(VIEWPORT)
    yield _kept_page
    _kept_page.evaluate("location.protocol === 'http:' && localStorage.clear()")
    _kept_page.goto("about:blank")
    end()
