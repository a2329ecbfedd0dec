"""An open page follows the tables, and a server that comes back."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from dashboard.reading import window
from dashboard.server import DashboardServer
from streaming.settings.model import load
from streaming.tables.liveness import FOLDER
from tests.browser.conftest import Watch
from tests.browser.day_tables import MINUTE_MS, T0, rebalance, write_rows
from tests.streaming.tables.signs import leave_living_sign, leave_silent_sign

MARK = "window.isTheSamePage = true"


@pytest.fixture
def small(tmp_path: Path) -> Path:
    add(tmp_path, 0)
    write_rows(
        tmp_path, "groups", [{"cluster": "c", "group_id": "orders", "system": "kafka", "state": "stable"} | COUNTS]
    )
    leave_living_sign(tmp_path, "c")
    return tmp_path


COUNTS = {"members": 1, "queues": 1, "idle_members": 0, "unassigned_queues": 0, "spread": 0, "last_rebalance_at": T0}


def add(root: Path, number: int) -> None:
    write_rows(
        root, "rebalances", [rebalance("c", "orders", f"r{number}", T0 + number * MINUTE_MS, f"member-{number}")]
    )


def server_over(root: Path, port: int = 0) -> DashboardServer:
    return DashboardServer(root, load(overrides={"dashboard.port": port, "dashboard.poll_interval_ms": 50}).dashboard)


@pytest.mark.parametrize("path", ["/rebalances?since=0", "/group?cluster=c&group=orders"])
def test_a_rebalance_appears_without_a_reload(page: Page, small: Path, path: str) -> None:
    with server_over(small).in_background() as server:
        page.goto(server.url.rstrip("/") + path)
        expect(page.locator("#live-state")).to_have_text("live")
        page.evaluate(MARK)
        add(small, 1)
        expect(page.locator("main")).to_contain_text("member-1 joined")
        assert page.evaluate("window.isTheSamePage") is True
        page.close()


def test_a_page_continues_when_the_server_is_back(page: Page, small: Path, watch: Watch) -> None:
    watch.allows_lost_connections = True
    first = server_over(small)
    with first.in_background():
        page.goto(first.url + "rebalances?since=0")
        expect(page.locator("#live-state")).to_have_text("live")
        page.evaluate(MARK)
    expect(page.locator("#live-state")).to_have_text("reconnecting")
    # The page also shows what happened while the server was away.
    add(small, 1)
    with server_over(small, first.port).in_background():
        expect(page.locator("main")).to_contain_text("member-1 joined", timeout=30_000)
        expect(page.locator("#live-state")).to_have_text("live")
        add(small, 2)
        expect(page.locator("main")).to_contain_text("member-2 joined")
        assert page.evaluate("window.isTheSamePage") is True
        page.close()


def test_tables_that_a_reader_opened_stay_open(page: Page, small: Path, serve: Callable[..., DashboardServer]) -> None:
    url = serve(small).url
    page.goto(url + "group?cluster=c&group=orders")
    expect(page.locator("#live-state")).to_have_text("live")
    summary = page.locator("figure summary").first
    summary.click()
    add(small, 1)
    expect(page.locator("main")).to_contain_text("member-1 joined")
    assert page.locator("figure details").first.get_attribute("open") is not None


def test_a_choice_that_is_not_shown_yet_stays(page: Page, small: Path, serve: Callable[..., DashboardServer]) -> None:
    url = serve(small).url
    page.goto(url + "rebalances?since=0")
    expect(page.locator("#live-state")).to_have_text("live")
    page.get_by_role("searchbox").press_sequentially("orders")
    page.get_by_label("Cause").focus()
    page.keyboard.press("ArrowDown")
    chosen = page.get_by_label("Cause").input_value()
    assert chosen
    add(small, 1)
    expect(page.locator("main")).to_contain_text("member-1 joined")
    assert page.evaluate("document.activeElement.name") == "trigger"
    assert page.get_by_label("Cause").input_value() == chosen
    assert page.get_by_role("searchbox").input_value() == "orders"
    page.keyboard.press("Enter")
    page.wait_for_url(f"**q=orders&trigger={chosen}*")


def test_the_last_hour_of_a_silent_cluster_passes(page: Page, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [T0 + 30 * MINUTE_MS]
    monkeypatch.setattr(window, "now_ms", lambda: now[0])
    page.clock.install()
    with server_over(small).in_background() as server:
        page.goto(f"{server.url}?range=1h")
        expect(page.locator("main")).to_contain_text("1 rebalance in this range")
        expect(page.locator("#live-state")).to_have_text("live")
        now[0] += 31 * MINUTE_MS
        page.clock.fast_forward(MINUTE_MS)
        expect(page.locator("main")).to_contain_text("0 rebalances in this range")
        page.close()


def test_a_lag_that_grows_is_shown_without_a_reload(page: Page, small: Path) -> None:
    queue = {"cluster": "c", "group_id": "orders", "topic": "t", "queue_id": 0}

    def commit(lag: int) -> None:
        offsets = {"committed_offset": 1, "committed_at": T0, "end_offset": 1 + lag, "end_at": T0, "lag": lag}
        write_rows(small, "queue_progress", [queue | offsets | {"event_time": T0 + lag}])

    commit(7)
    with server_over(small).in_background() as server:
        page.goto(server.url + "group?cluster=c&group=orders")
        expect(page.locator("#live-state")).to_have_text("live")
        lag = page.locator('[aria-label="Offsets and lag"] td.k-lag')
        expect(lag).to_contain_text("7")
        commit(1_234)
        expect(lag).to_contain_text("1,234")
        page.close()


def test_the_header_turns_grey_while_a_cluster_is_unknown(page: Page, small: Path) -> None:
    def colour() -> str:
        found: str = page.evaluate(
            "getComputedStyle(document.getElementById('live-state'), '::before').backgroundColor"
        )
        return found

    with server_over(small).in_background() as server:
        page.goto(server.url + "group?cluster=c&group=orders")
        state, lanes = page.locator("#live-state"), page.locator("[data-lanes]")
        expect(state).to_have_text("live")
        colours = [colour()]
        shutil.rmtree(small / FOLDER)
        leave_silent_sign(small, "c", known_until=T0 + MINUTE_MS)
        expect(state).to_have_text("blind")
        colours.append(colour())
        expect(page.locator(".notice.blind").first).to_contain_text("is blind since 2026-01-01 00:01:00: it is silent.")
        expect(lanes).to_have_attribute("data-known-until", str(T0 + MINUTE_MS))
        shutil.rmtree(small / FOLDER)
        leave_living_sign(small, "c")
        expect(state).to_have_text("live")
        expect(page.locator(".notice.blind")).to_have_count(0)
        colours.append(colour())
        page.close()
    assert colours[0] == colours[2] != colours[1]


def test_a_page_that_cannot_be_refreshed_says_so(page: Page, small: Path, watch: Watch, tmp_path: Path) -> None:
    watch.allows_unreadable_tables = True
    with server_over(small).in_background() as server:
        page.goto(server.url + "rebalances?since=0")
        state, notice = page.locator("#live-state"), page.locator("[data-old]")
        expect(state).to_have_text("live")
        (small / "rebalances").rename(tmp_path / "aside")
        expect(notice).to_contain_text("out of date")
        expect(state).to_have_text("out of date")
        expect(page.locator("main")).to_contain_text("member-0 joined")
        (tmp_path / "aside").rename(small / "rebalances")
        expect(state).to_have_text("live")
        expect(notice).to_have_count(0)
        page.close()
