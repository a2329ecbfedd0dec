"""A night on call: from the overview, each planted incident is found, explained and traced to its culprit by links."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from dashboard.server import DashboardServer
from streaming.machine.clock import now_ms
from tests.browser.night_tables import write_night

MOST_CLICKS = 5


@pytest.fixture(scope="module")
def night_url(serve: Callable[..., DashboardServer], tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("night")
    write_night(root, now_ms())
    return serve(root).url.rstrip("/")


class Walk:
    """Somebody who begins at the overview, and only follows what a page shows; each click is counted."""

    def __init__(self, page: Page, url: str) -> None:
        self._page = page
        self.clicks = 0
        page.goto(url)

    def click(self, name: str, *, within: str = "main", role: str = "link") -> None:
        """Follow the first link of this name, or press such a button, in a part of the page."""
        target = self._page.locator(within).get_by_role(role, name=re.compile(name)).first  # type: ignore[arg-type]
        target.click()
        self.clicks += 1
        assert self.clicks <= MOST_CLICKS

    def sees(self, *texts: str) -> None:
        """Check that the content of the page says this."""
        for text in texts:
            expect(self._page.locator("main")).to_contain_text(text)


@pytest.fixture
def walk(kept_page: Page, night_url: str) -> Walk:
    return Walk(kept_page, night_url)


def problem(group: str) -> str:
    """Return where the overview says what is wrong with a group."""
    return f".problem:has(:text-is('{group}'))"


def test_a_client_that_flaps_is_traced_to_its_host(walk: Walk, kept_page: Page) -> None:
    walk.sees("payments-3@10.0.0.23 caused 7 of 7")
    walk.click("rebalance with which it began", within=problem("payments"))
    walk.sees("payments-3", "same_client_again", "Findings then, and what to do")
    walk.click("payments-3@10.0.0.23", within="section:has(h2:text-is('Why'))")
    walk.sees("Findings that name it", "came back", "Rebalances caused")
    walk.click(r"^10\.0\.0\.23$", within=".head")
    expect(kept_page.locator("h1")).to_contain_text("10.0.0.23")
    walk.sees("A host", "payments-3@10.0.0.23", "expired")
    # And back, from the host to what is wrong.
    walk.click("payments$", within="#findings")
    expect(kept_page.locator("h1")).to_contain_text("payments")


def test_the_episode_of_a_flapping_client_is_one_row(walk: Walk, kept_page: Page) -> None:
    walk.click("^payments$", within=problem("payments"))
    rows = kept_page.locator("#rebalances tbody tr:visible")
    few = rows.count()
    expect(kept_page.locator("#rebalances .episode")).to_contain_text("same client again and again")
    button = kept_page.get_by_role("button", name=re.compile("of .* rebalances"))
    expect(button).to_have_attribute("aria-expanded", "false")
    button.press("Enter")
    expect(button).to_have_attribute("aria-expanded", "true")
    expect(rows).to_have_count(kept_page.locator("#rebalances tbody tr").count())
    assert rows.count() > few
    button.press("Space")
    expect(rows).to_have_count(few)


def test_a_queue_that_a_living_member_does_not_read_is_traced_to_that_member(walk: Walk, kept_page: Page) -> None:
    walk.sees("orders-2 has not moved since")
    walk.click("topic orders", within=problem("orders"))
    walk.sees("What to do next", "orders is furthest behind")
    row = kept_page.locator("#commits tbody tr:has(:text-is('orders-2'))")
    expect(row).to_contain_text("orders-1-a1")
    walk.click("orders-1-a1", within="#commits tbody tr:has(:text-is('orders-2'))")
    expect(kept_page.locator("h1")).to_contain_text("orders-1-a1")
    walk.sees("10.0.6.2", "Findings that name it", "is alive and holds it since")
    walk.click(r"^10\.0\.6\.2$", within=".head")
    walk.sees("A host")


def test_queues_that_nobody_reads_are_traced_to_the_growth_of_their_topic(walk: Walk, kept_page: Page) -> None:
    walk.sees("invoices-6 and -7 are read by nobody")
    walk.click("topic invoices", within=problem("invoices"))
    walk.sees("Without an owner in invoices: 2 queues, though it has members")
    expect(kept_page.locator("#changes tbody tr")).to_have_count(2)
    expect(kept_page.locator("#queues tbody tr:has-text('invoices-7')")).to_contain_text("invoices")
    walk.click("its members", within="#now")
    walk.sees("invoices-2-a1", "Queues that nobody reads")


def test_what_is_not_known_of_a_silent_cluster_is_found_and_explained(walk: Walk, kept_page: Page) -> None:
    walk.sees("as far as is known", "no broker answers")
    walk.click("^edge$", within=".notice.blind")
    walk.sees("unknown")
    walk.click("^sensors$", within="[role=region][aria-label=Groups]")
    walk.sees("What follows is as last known", "the cluster was not known from")
    chart = kept_page.locator("[data-chart=lag]")
    expect(chart).to_have_attribute("data-drawn", re.compile("[1-9]"))
    # What is drawn ends with the knowledge: no row of the chart is later.
    rows = kept_page.evaluate("fetch(document.querySelector('[data-chart=lag]').dataset.source).then((r) => r.json())")
    assert rows["gaps"]
    assert all(gap["since"] < gap["until"] for gap in rows["gaps"])
    assert max(row["at"] for row in rows["rows"]) < rows["gaps"][0]["since"]


def test_an_id_in_a_table_is_copied_with_keys(open_context: Callable[..., object], night_url: str) -> None:
    context = open_context(permissions=["clipboard-read", "clipboard-write"])
    page: Page = context.new_page()  # type: ignore[attr-defined]
    page.goto(f"{night_url}/members?open=yes&q=orders-1")
    page.get_by_role("region", name="Members").get_by_role("link", name="orders-1-a1").focus()
    page.keyboard.press("Tab")
    button = page.get_by_role("button", name="Copy orders-1-a1")
    expect(button).to_be_focused()
    page.keyboard.press("Enter")
    expect(button).to_have_text("copied")
    assert page.evaluate("navigator.clipboard.readText()") == "orders-1-a1"


def test_the_search_leads_to_the_page_of_a_topic_and_of_a_queue(kept_page: Page, night_url: str) -> None:
    kept_page.goto(f"{night_url}/search?q=invoices-7")
    kept_page.get_by_role("link", name=re.compile("queue")).first.click()
    expect(kept_page.locator("h1")).to_contain_text("invoices-7")
    expect(kept_page.locator("#queues tbody tr")).to_have_count(1)
    kept_page.goto(f"{night_url}/search?q=invoices")
    kept_page.locator("#hits a:has-text('topic')").first.click()
    expect(kept_page.locator("#queues tbody tr")).to_have_count(8)
