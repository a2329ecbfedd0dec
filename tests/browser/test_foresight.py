"""Pages that look ahead, in Chromium: axe finds nothing in them, and the keyboard alone asks what a change would do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from dashboard.server import DashboardServer
from tests.browser.test_access import tab_to, violations
from tests.dashboard.replayed_tables import write_run
from tests.streaming.commands.test_advise import write_savings

GROUP = "cluster=shop&group=orders"


@pytest.fixture(scope="module")
def url(serve: Callable[..., DashboardServer], tmp_path_factory: pytest.TempPathFactory) -> str:
    """Serve groups with a run of advice."""
    root: Path = tmp_path_factory.mktemp("foresight")
    write_savings(root)
    write_run(root)
    return serve(root).url.rstrip("/")


@pytest.mark.parametrize(
    "path",
    [
        "/advice",
        "/advice?cluster=shop&group_id=orders",
        "/replays",
        f"/what-if?{GROUP}&add=2&remove=1",
        f"/what-if?{GROUP}&strategy=all",
        f"/what-if?{GROUP}&remove=nobody",
    ],
)
def test_axe_finds_no_violation(kept_page: Page, url: str, path: str) -> None:
    answer = kept_page.goto(url + path)
    assert answer is not None
    assert answer.status == 200
    assert violations(Axe(), kept_page) == []  # type: ignore[arg-type]


def test_the_keyboard_alone_asks_on_the_page_of_a_group_what_a_change_would_do(page: Page, url: str) -> None:
    page.goto(f"{url}/group?{GROUP}#what-if")
    tab_to(page, "add")
    page.keyboard.type("2")
    tab_to(page, "remove")
    page.keyboard.type("a-1")
    page.keyboard.press("Enter")
    page.wait_for_url("**/what-if?*add=2*")
    expect(page.locator(".lead")).to_contain_text("2 new members, without a-1")
    rows = page.get_by_role("region", name="Queues of each member before and after")
    expect(rows.locator("tbody tr")).to_have_count(4)
    # The address is the whole question: another browser sees the same.
    before = page.locator("main section").first.inner_text()
    page.goto(page.url)
    assert page.locator("main section").first.inner_text() == before
    expect(page.locator("input[name=remove]")).to_have_value("a-1")


def test_what_is_shown_leads_to_the_advice_and_back(page: Page, url: str) -> None:
    page.goto(f"{url}/group?{GROUP}")
    page.get_by_role("link", name="Advice ›").click()
    expect(page.locator("h1")).to_have_text("Advice to orders")
    expect(page.locator(".policy")).not_to_have_count(0)
    expect(page.locator(".advice").first).to_contain_text("CONSISTENT_HASH")
    page.get_by_role("link", name="advice to all groups").click()
    page.get_by_role("link", name="All policies of this run").click()
    expect(page.locator("h1")).to_have_text("Replays")
    widths = page.locator(".bars").evaluate_all(
        "all => [...new Set(all.map(one => one.getBoundingClientRect().width))]"
    )
    assert len(widths) == 1, "bars of one scale have one length"


def test_a_change_of_several_parts_waits_for_its_button(page: Page, url: str) -> None:
    page.goto(f"{url}/what-if?{GROUP}")
    page.get_by_label("Strategy").select_option("AVG_BY_CIRCLE")
    page.get_by_label("Rolling restart").click()
    page.get_by_label("New members", exact=True).fill("1")
    assert page.url.endswith(GROUP)
    page.get_by_role("button", name="Foresee").click()
    page.wait_for_url("**add=1*")
    expect(page.locator(".lead")).to_contain_text("AVG_BY_CIRCLE, 1 new member, a rolling restart, 1 at a time")
