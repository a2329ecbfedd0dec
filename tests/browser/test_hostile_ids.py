"""Malicious ids are shown as text, on every page and in every answer."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

import httpx2
import pytest
from playwright.sync_api import Page

from streaming.terminal.escape import printable
from tests.dashboard.hostile import HOSTILE, KINDS

LISTINGS = ("/?sort=cluster", "/rebalances?since=0", "/findings", "/members", "/rejected-events")
SCRIPTS = ["/static/theme.js", "/static/vendor/htmx.min.js", "/static/pages.js"]
# Ids share an open page, taken at equal distances so that each batch has all kinds. The first batch has the clusters.
BATCHES = 10
# It takes a second to draw the pages of one id. Every id is in the listings; `make soak` opens the pages of each kind.
SAMPLE = (0,)
# Opens pages inside an open one: their elements live in it, their charts and timelines are drawn. Returns of each page
# its status, scripts, elements that are none of ours, heading, and ids that are shown.
OPEN_ALL = """async (paths) => {
  const holder = document.createElement("div");
  document.querySelector("main").after(holder);
  const opened = await Promise.all(paths.map(async (path) => {
    const answer = await fetch(path), found = new DOMParser().parseFromString(await answer.text(), "text/html");
    const main = found.querySelector("main");
    const scripts = [...found.scripts].map((one) => new URL(one.src || "/inline", location).pathname);
    const strange = found.querySelectorAll("main :is(script, style, iframe, img, base, object)").length;
    holder.append(main);
    return {
      path, status: answer.status, scripts, strange, heading: main.querySelector("h1")?.textContent ?? "",
      ids: [...main.querySelectorAll(".id")].map((one) => one.textContent),
      lanes: [...main.querySelectorAll("[data-lanes]")],
    };
  }));
  document.body.dispatchEvent(new Event("htmx:after:swap"));
  const lanes = opened.flatMap((one) => one.lanes);
  while (!lanes.every((one) => one.dataset.drawn)) await new Promise((resolve) => setTimeout(resolve, 20));
  if (!lanes.every((one) => one.dataset.annotations === "1")) throw new Error("an annotation is missing");
  const owners = lanes.map((one) => one.closest("figure").querySelectorAll("[data-lane-legend] span").length);
  holder.remove();
  return { owners, pages: opened.map(({ lanes, ...page }) => page) };
}"""
FETCH_JSON = """(paths) => Promise.all(paths.map(async (path) => {
  const answer = await fetch(path);
  return { status: answer.status, type: answer.headers.get("content-type"), body: await answer.json() };
}))"""


@pytest.fixture
def page(kept_page: Page) -> Page:
    """Let all tests of this file read in one page."""
    return kept_page


def cluster_of(number: int) -> str:
    name = HOSTILE[number]
    return f"c{name}" if number % 10 == 0 and len(name) < 1_000 else "c"


def own_pages(number: int) -> list[str]:
    """Return the addresses of an id, that of its group first."""
    name, cluster = HOSTILE[number], cluster_of(number)
    return [
        "/group?" + urlencode({"cluster": cluster, "group": name}),
        "/member?" + urlencode({"cluster": cluster, "member": name}),
        "/client?" + urlencode({"cluster": cluster, "client": name}),
        "/host?" + urlencode({"cluster": cluster, "host": name}),
        f"/rebalance?id=r{number}",
        "/members?" + urlencode({"host": name}),
        "/questions/who-owned?" + urlencode({"topic": name, "queue": 0, "group": name}),
        "/search?" + urlencode({"q": name[:200]}),
    ]


def cluster_pages() -> list[str]:
    """Return the address of a question about each cluster: many groups share one, and its answer names them all."""
    clusters = dict.fromkeys(map(cluster_of, range(len(HOSTILE))))
    return ["/questions/most-rebalances?" + urlencode({"cluster": cluster}) for cluster in clusters]


def is_whole(page: Page) -> bool:
    """Return whether the page's own structure is untouched: its scripts, and no element of anybody else's."""
    scripts: list[str] = page.evaluate("[...document.scripts].map(one => new URL(one.src).pathname)")
    strange: int = page.evaluate(
        "document.querySelectorAll('main :is(script, style, iframe, img, base, object)').length"
    )
    return scripts == SCRIPTS and strange == 0


@pytest.mark.parametrize("path", LISTINGS)
def test_listings_escape_hostile_ids(page: Page, hostile_url: str, path: str) -> None:
    for number in (1, 2):
        page.goto(f"{hostile_url}{path}{'&' if '?' in path else '?'}page={number}")
        assert is_whole(page)
        texts = page.locator("tbody .id").all_text_contents()
        assert texts
        assert all(text.isprintable() for text in texts)


@pytest.mark.parametrize(
    "first", [batch if batch in SAMPLE else pytest.param(batch, marks=pytest.mark.slow) for batch in range(BATCHES)]
)
def test_each_page_of_an_id_is_whole(page: Page, hostile_url: str, first: int) -> None:
    numbers = range(first, len(KINDS), BATCHES)
    answer = page.goto(hostile_url + own_pages(first)[0])
    assert answer is not None
    assert answer.status == 200
    assert is_whole(page)
    assert page.locator("h1 .id").text_content() == printable(HOSTILE[first])
    page.locator("[data-lanes][data-drawn]").wait_for()
    found = open_all(page, [path for number in numbers for path in own_pages(number)])
    count = len(own_pages(first))
    headings = [opened["heading"] for opened in found["pages"]]
    assert headings[::count] == headings[1::count] == [printable(HOSTILE[number]) for number in numbers]
    assert found["owners"] == [1] * len(numbers)


def test_each_page_of_a_cluster_is_whole(page: Page, hostile_url: str) -> None:
    page.goto(f"{hostile_url}/questions")
    opened = open_all(page, cluster_pages())["pages"]
    assert sum(len(shown["ids"]) for shown in opened) >= len(HOSTILE)


def open_all(page: Page, paths: list[str]) -> dict[str, Any]:
    """Open pages inside the one that is open, and check that each is whole and shows ids, all as text."""
    found: dict[str, Any] = page.evaluate(OPEN_ALL, paths)
    for opened in found["pages"]:
        assert (opened["status"], opened["scripts"], opened["strange"]) == (200, SCRIPTS, 0), opened["path"]
        assert opened["ids"], opened["path"]
        assert all(text.isprintable() for text in opened["ids"]), opened["path"]
    # The pages inside have changed nothing in the page that holds them either.
    assert is_whole(page)
    return found


def test_the_routes_of_burrow_answer_each_id_as_json(page: Page, hostile_url: str) -> None:
    # A browser takes "." and ".." for steps in a path.
    reachable = [number for number, name in enumerate(KINDS) if name not in (".", "..") and cluster_of(number) == "c"]
    page.goto(f"{hostile_url}/questions")
    # One route reads the ids of all three.
    for suffix, asked in (("/status", reachable), ("/lag", reachable[::10]), ("", reachable[::10])):
        paths = [f"/v3/kafka/c/consumer/{quote(HOSTILE[number], safe='')}{suffix}" for number in asked]
        answers = page.evaluate(FETCH_JSON, paths)
        assert {answer["type"] for answer in answers} == {"application/json"}
        wrong = [
            (HOSTILE[number][:40], answer["status"])
            for number, answer in zip(asked, answers, strict=True)
            if answer["status"] != 200
        ]
        assert wrong == []
        if suffix:
            assert [answer["body"]["status"]["group"] for answer in answers] == [HOSTILE[number] for number in asked]


def test_each_id_is_listed_as_it_is(hostile_url: str) -> None:
    rows = httpx2.get(f"{hostile_url}/api/v1/groups?limit=1000", trust_env=False, timeout=60).json()["rows"]
    assert {row["group_id"] for row in rows} == set(HOSTILE)
