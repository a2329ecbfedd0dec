"""Ids that somebody chose to do harm are text, on every page and in every answer."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlencode

import httpx2
import pytest
from playwright.sync_api import Page, expect

from streaming.terminal.escape import printable
from tests.browser.day_tables import HOSTILE

LISTINGS = ("/?sort=cluster", "/rebalances?since=0", "/findings", "/members", "/rejected-events")
# Of all pages of one id, in Chromium; the others over HTTP.
IN_CHROMIUM = HOSTILE[::16]


def cluster_of(number: int) -> str:
    name = HOSTILE[number]
    return f"c{name}" if number % 10 == 0 and len(name) < 1_000 else "c"


def own_pages(number: int) -> list[str]:
    name, cluster = HOSTILE[number], cluster_of(number)
    return [
        "/group?" + urlencode({"cluster": cluster, "group": name}),
        "/member?" + urlencode({"cluster": cluster, "member": name}),
        f"/rebalance?id=r{number}",
        "/members?" + urlencode({"host": name}),
    ]


def is_whole(page: Page) -> bool:
    """Return whether the page's own structure is untouched: its scripts, and no element of anybody else's."""
    scripts: list[str] = page.evaluate("[...document.scripts].map(one => new URL(one.src).pathname)")
    strange: int = page.evaluate(
        "document.querySelectorAll('main :is(script, style, iframe, img, base, object)').length"
    )
    return scripts == ["/static/theme.js", "/static/vendor/htmx.min.js", "/static/pages.js"] and strange == 0


@pytest.mark.parametrize("path", LISTINGS)
def test_listings_show_all_of_them_as_text(page: Page, hostile_url: str, path: str) -> None:
    for number in (1, 2):
        page.goto(f"{hostile_url}{path}{'&' if '?' in path else '?'}page={number}")
        assert is_whole(page)
        texts = page.locator("tbody .id").all_text_contents()
        assert texts
        assert all(text.isprintable() for text in texts)


@pytest.mark.parametrize("name", IN_CHROMIUM, ids=range(len(IN_CHROMIUM)))
def test_each_page_of_an_id_is_whole(page: Page, hostile_url: str, name: str) -> None:
    for path in own_pages(HOSTILE.index(name)):
        answer = page.goto(hostile_url + path)
        assert answer is not None
        assert answer.status == 200
        assert is_whole(page)
    page.goto(hostile_url + own_pages(HOSTILE.index(name))[0])
    assert page.locator("h1 .id").text_content() == printable(name)
    expect(page.locator("[data-lanes]")).to_have_attribute("data-drawn", re.compile("[0-9]"))
    assert page.locator("[data-lane-legend] span").count() == 1


def test_each_page_of_every_id_is_there(hostile_url: str, hostile: Path) -> None:
    with httpx2.Client(trust_env=False, timeout=60) as client:
        for number in range(len(HOSTILE)):
            codes = [client.get(hostile_url + path).status_code for path in own_pages(number)]
            assert codes == [200] * len(codes), number
        rows = client.get(f"{hostile_url}/api/v1/groups?limit=1000").json()["rows"]
    assert {row["group_id"] for row in rows} == set(HOSTILE)
