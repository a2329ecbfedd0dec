"""Everybody can use the pages: axe finds nothing in both themes and at phone width; the keyboard alone suffices."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, Page, expect

import dashboard
from tests.browser.conftest import TOKEN, Watch
from tests.browser.page_paths import ERRORS, KINDS, paths

SCREENS: dict[str, tuple[Literal["light", "dark"], int]] = {
    "light": ("light", 1360),
    "dark": ("dark", 1360),
    "phone": ("light", 390),
    "dark phone": ("dark", 390),
}
ROWS = 20
# Elements that violate a rule are all described; of those that fulfil it, only the first.
OPTIONS: dict[str, object] = {"resultTypes": ["violations"]}
# A theme is colours and nothing else, which a test of this file holds: all other rules are checked in the light one.
COLOURS = OPTIONS | {"runOnly": ["color-contrast", "link-in-text-block"]}


@pytest.fixture(scope="module")
def addresses(day_url: str) -> dict[str, str]:
    """Return one address of each kind of page."""
    found = paths(day_url)
    assert tuple(found) == KINDS
    return found


@pytest.fixture(scope="module")
def axe() -> Iterator[Axe]:
    return Axe()  # type: ignore[return-value]


# All questions have one template. The first of these is about one queue, the second has SQL in three dialects.
_QUESTIONS = ("question queue-history", "question members-that-cause", "question compare-weeks")


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.slow) if kind.startswith("question ") and kind not in _QUESTIONS else kind
        for kind in KINDS
    ],
)
def test_axe_finds_no_violation(axe: Axe, kept_page: Page, day_url: str, addresses: dict[str, str], kind: str) -> None:
    answer = kept_page.goto(day_url + addresses[kind])
    assert answer is not None
    assert answer.status == 200
    assert violations(axe, kept_page) == []


@pytest.mark.parametrize("path", ERRORS)
def test_axe_finds_no_violation_in_an_error(axe: Axe, kept_page: Page, day_url: str, path: str, watch: Watch) -> None:
    watch.allows_refusals, page = True, kept_page
    answer = page.goto(day_url + path)
    assert answer is not None
    assert answer.status == ERRORS[path]
    title = {404: "Not found", 400: "This cannot be asked"}[ERRORS[path]]
    expect(page.locator("h1")).to_have_text(title)
    expect(page.locator(".lead")).to_contain_text(re.compile(r"\w+ \w+"))
    assert violations(axe, page) == []


def test_the_keyboard_alone_gives_the_token(axe: Axe, page: Page, guarded_url: str, watch: Watch) -> None:
    watch.allows_refusals = True
    page.goto(guarded_url + "/findings?open=any")
    expect(page.locator("h1")).to_have_text("Token")
    assert violations(axe, page) == []
    # The field has the focus already.
    page.keyboard.type("not the token")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("This is not the token.")
    assert violations(axe, page) == []
    page.keyboard.type(TOKEN)
    page.keyboard.press("Enter")
    page.wait_for_url("**/findings?open=any")
    expect(page.locator("h1")).to_have_text("Findings")


def violations(axe: Axe, page: Page) -> list[str]:
    """Return what axe finds in the page that is open, with its parts unfolded, in every theme and at every width."""
    for details in page.locator("details").all()[:6]:
        details.evaluate("one => { one.open = true; }")
    wrong = []
    for screen, (theme, width) in SCREENS.items():
        page.emulate_media(color_scheme=theme)
        page.set_viewport_size({"width": width, "height": 800})
        # At phone width nothing but tables is moved sideways.
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            wrong.append(f"{screen}: wider than the screen")
    # The rows of a table are alike, and axe takes long with hundreds of them.
    page.evaluate(f"[...document.querySelectorAll('tbody tr:nth-child(n + {ROWS + 1})')].map(one => one.remove())")
    # Once for all screens: `axe.run` would load its half a megabyte for each.
    page.evaluate(axe.axe_script)
    for screen, (theme, width) in SCREENS.items():
        page.emulate_media(color_scheme=theme)
        page.set_viewport_size({"width": width, "height": 800})
        options = OPTIONS if theme == "light" else COLOURS
        found = page.evaluate("async options => (await axe.run(options)).violations", options)
        wrong += [
            f"{screen}: {violation['id']} {violation['nodes'][0]['target']} {violation['nodes'][0]['failureSummary']}"
            for violation in found
        ]
    return wrong


def test_a_theme_changes_colours_and_nothing_else() -> None:
    text = (Path(dashboard.__file__).parent / "static/pages.css").read_text(encoding="utf-8")
    blocks = re.findall(r"(?:data-theme|prefers-color-scheme)[^{]*\{((?:[^{}]|\{[^{}]*\})*)\}", text)
    assert len(blocks) >= 4
    inner = [re.sub(r"[^{};]*\{|\}", "", block) for block in blocks]
    names = {
        declaration.partition(":")[0].strip()
        for block in inner
        for declaration in block.split(";")
        if declaration.strip()
    }
    assert {name for name in names if not name.startswith("--")} == {"color-scheme"}


def focused(page: Page) -> str:
    """Return the element that has the focus: its label, or the name of a field."""
    text: str = page.evaluate(
        "(document.activeElement.getAttribute('aria-label') || document.activeElement.name"
        " || document.activeElement.innerText || '').trim()"
    )
    return text


def tab_to(page: Page, begins: str) -> None:
    """Press Tab until something has the focus; each stop is visible."""
    for _ in range(200):
        page.keyboard.press("Tab")
        if focused(page).startswith(begins):
            style = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert style != "none"
            return
    raise AssertionError(f"Tab does not reach {begins}")


def test_the_keyboard_alone_filters_orders_and_opens(page: Page, day_url: str) -> None:
    page.goto(day_url)
    page.keyboard.press("Tab")
    assert focused(page) == "Skip to the content"
    tab_to(page, "q")
    page.keyboard.type("group-1")
    page.keyboard.press("Enter")
    page.wait_for_url("**q=group-1*")
    tab_to(page, "Queues")
    page.keyboard.press("Enter")
    page.wait_for_url("**sort=-queues*")
    tab_to(page, "group-1")
    page.keyboard.press("Enter")
    page.wait_for_url("**/group?*")
    tab_to(page, "Theme")
    page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")


def test_the_keyboard_alone_reads_the_timeline(page: Page, day_url: str, addresses: dict[str, str]) -> None:
    page.goto(day_url + addresses["group"])
    expect(page.locator("[data-lanes]")).to_have_attribute("data-drawn", re.compile("[0-9]"))
    tab_to(page, "Timeline of ownership")
    view = "(() => { const l = document.querySelector('[data-lanes]').lanes; return [l.begin, l.end, l.scroll]; })()"
    whole = page.evaluate(view)
    page.keyboard.press("+")
    page.keyboard.press("+")
    near = page.evaluate(view)
    assert near[1] - near[0] == pytest.approx((whole[1] - whole[0]) / 4)
    page.keyboard.press("ArrowRight")
    assert page.evaluate(view)[0] > near[0]
    page.keyboard.press("n")
    expect(page.locator("[data-lane-status]")).to_contain_text("queues moved")
    page.keyboard.press("Enter")
    page.wait_for_url("**/rebalance?id=*")


def test_the_keyboard_alone_uses_the_page_of_a_group(page: Page, day_url: str, addresses: dict[str, str]) -> None:
    page.goto(day_url + addresses["group"])
    expect(page.locator("[data-lanes]")).to_have_attribute("data-drawn", re.compile("[0-9]"))
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.url.endswith("#live")
    tab_to(page, "Zoom in")
    view = "(() => { const l = document.querySelector('[data-lanes]').lanes; return l.end - l.begin; })()"
    whole = page.evaluate(view)
    page.keyboard.press("Enter")
    assert page.evaluate(view) == pytest.approx(whole / 2)
    tab_to(page, "Show all")
    page.keyboard.press("Space")
    assert page.evaluate(view) == pytest.approx(whole)
    tab_to(page, "Show as table")
    page.keyboard.press("Enter")
    expect(page.locator("figure.lanes details")).to_have_attribute("open", "")
    tab_to(page, "Spans of ownership")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.locator("figure.lanes details")).not_to_have_attribute("open", "")
    # A table that is wider than its place moves with the arrows.
    tab_to(page, "Members")
    assert page.evaluate("document.activeElement.matches('.scroll[tabindex=\"0\"]')")
    page.keyboard.press("Tab")
    member = focused(page)
    page.keyboard.press("Enter")
    page.wait_for_url("**/member?*")
    expect(page.locator("h1")).to_have_text(member)


def test_the_keyboard_alone_opens_a_question(page: Page, day_url: str) -> None:
    page.goto(f"{day_url}/questions")
    tab_to(page, "Which groups rebalance most?")
    page.keyboard.press("Enter")
    page.wait_for_url("**/questions/most-rebalances")
    tab_to(page, "limit")
    page.keyboard.type("3")
    page.keyboard.press("Enter")
    page.wait_for_url("**limit=3*")
    assert page.locator("tbody tr").count() == 3
    tab_to(page, "Which groups rebalance most?")
    tab_to(page, "SQL for Trino")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.locator("pre:focus")).to_contain_text("LIMIT 3")


def test_the_keyboard_alone_filters_a_listing(page: Page, day_url: str) -> None:
    page.goto(f"{day_url}/rebalances?since=0")
    # Keys go through the options of several filters before anything is asked for.
    tab_to(page, "trigger")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Tab")
    assert focused(page) == "status"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    expect(page.get_by_label("Status")).to_have_value("completed")
    assert page.url == f"{day_url}/rebalances?since=0"
    page.keyboard.press("Enter")
    page.wait_for_url("**status=completed*")
    expect(page.get_by_label("Status")).to_have_value("completed")
    # The button does the same, also for a choice from the open list.
    tab_to(page, "agrees")
    page.keyboard.press("Alt+ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Agrees")).to_have_value("true")
    tab_to(page, "Show")
    page.keyboard.press("Enter")
    page.wait_for_url("**agrees=true*")
    # The page before shows what its address has.
    page.go_back()
    page.wait_for_url(lambda url: "agrees" not in url)
    expect(page.get_by_label("Agrees")).to_have_value("")
    expect(page.get_by_label("Status")).to_have_value("completed")
    fitting = page.evaluate("fetch('/api/v1/rebalances?since=0&limit=1&status=completed').then(one => one.json())")
    expect(page.locator(".pager span").first).to_have_text(f"1–100 of {fitting['total']:,}")
    # Everything else in the address is shown as a chip, and a click on the chip removes it.
    tab_to(page, "Without since")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "since" not in url)
    tab_to(page, "Clear")
    page.keyboard.press("Enter")
    page.wait_for_url("**/rebalances")


def test_the_pages_work_with_reduced_motion_and_forced_colours(
    open_context: Callable[..., BrowserContext], day_url: str, addresses: dict[str, str], watch: Watch
) -> None:
    page = open_context(reduced_motion="reduce", forced_colors="active").new_page()
    for path in addresses.values():
        assert page.goto(day_url + path) is not None
    assert watch.wrong == []
