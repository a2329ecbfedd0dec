"""The range of time stays from page to page, a drag makes one; search finds from anywhere, with keys alone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.page_paths import paths


@pytest.fixture
def page(kept_page: Page) -> Page:
    """Let all tests of this file use one and the same page."""
    return kept_page


def test_a_range_stays_from_page_to_page(page: Page, day_url: str) -> None:
    page.goto(day_url)
    page.get_by_role("navigation", name="Range of time").get_by_role("link", name="6 h").click()
    page.wait_for_url("**range=6h*")
    for link in ("Rebalances", "Findings", "Members"):
        page.get_by_role("navigation", name="Pages").get_by_role("link", name=link).click()
        page.wait_for_url(f"**/{link.lower()}?range=6h")
        expect(page.locator(".range [aria-current]")).to_have_text("6 h")
    page.goto(f"{day_url}/rebalances?range=6h")
    page.get_by_role("searchbox").fill("group-1")
    page.keyboard.press("Enter")
    page.wait_for_url("**q=group-1*range=6h*")
    page.locator("td.k-group a:visible").first.click()
    page.wait_for_url("**/group?*range=6h*")
    expect(page.locator("main")).to_contain_text("in this range")


def test_a_custom_range_is_typed(page: Page, day_url: str) -> None:
    page.goto(f"{day_url}/rebalances?range=1h&trigger=member_left")
    page.get_by_text("Custom").click()
    page.get_by_label("From", exact=True).fill("2026-01-01 10:00")
    page.get_by_label("To", exact=True).fill("2026-01-01 11:00")
    page.keyboard.press("Enter")
    page.wait_for_url("**trigger=member_left*from=2026-01-01*")
    times = page.locator("tbody td.k-rebalance time").evaluate_all("all => all.map(one => one.dateTime)")
    assert times
    assert all("2026-01-01T10:" in time for time in times)


def test_a_drag_over_a_chart_makes_a_range(page: Page, day_url: str) -> None:
    page.goto(day_url)
    chart = page.locator("[data-chart='fleet'][data-drawn]")
    chart.wait_for()
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.15 * box["width"], box["y"] + 90)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.25 * box["width"], box["y"] + 90, steps=3)
    page.mouse.up()
    page.wait_for_url("**from=*to=*")
    expect(page.locator(".custom[data-current]")).to_have_count(1)
    begin, end = page.locator(".range time").evaluate_all("all => all.map(one => Date.parse(one.dateTime))")
    # A tenth of the width of a strip that is nearly half as wide as the chart: a fifth of the day.
    assert 3 < (end - begin) / 3_600_000 < 7


def test_keys_alone_find_and_open(page: Page, day_url: str) -> None:
    page.goto(f"{day_url}/questions?range=1h")
    page.keyboard.press("/")
    page.keyboard.type("group-5")
    expect(page.get_by_role("listbox", name="Found").get_by_role("option").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    selected = page.locator("#found [aria-selected=true]")
    expect(selected).to_have_count(1)
    expect(selected).to_contain_text("group-5")
    page.keyboard.press("Enter")
    page.wait_for_url("**/group?*group=group-5*range=1h*")
    expect(page.locator("h1")).to_have_text("group-5")


def test_enter_alone_opens_the_page_of_the_search(page: Page, day_url: str) -> None:
    page.goto(day_url)
    page.keyboard.press("/")
    page.keyboard.type("10.5")
    expect(page.locator("#found")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#found")).to_be_hidden()
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=10.5*")
    expect(page.locator("#hits li").first).to_be_visible()


def test_long_tables_unfold(page: Page, day_url: str) -> None:
    page.goto(day_url + paths(day_url)["group"])
    table = page.locator("#queues .scroll")
    folded = table.evaluate("one => one.clientHeight")
    page.locator("#queues .unfold").click()
    expect(page.locator("#queues .unfold")).to_have_text("Fold")
    assert table.evaluate("one => one.clientHeight") > folded
    expect(page.locator("[data-lanes]")).to_have_attribute("data-findings", re.compile("[0-9]"))
