"""Annotations on the page of a group, its timeline, and the page of a rebalance: hostile ones, too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from dashboard.app import create_app
from streaming.settings.model import Dashboard
from streaming.terminal.escape import printable
from tests.dashboard.hostile import HOSTILE
from tests.streaming.tables.journals import T0
from tests.streaming.views.annotated_story import MINUTE, annotate, annotation
from tests.streaming.views.story import FIRST, THIRD, write_story

GROUP = "/group?cluster=c1&group=orders"
TIMELINE = {"cluster": "c1", "group_id": "orders"}


def served(tables: Path, settings: Dashboard) -> TestClient:
    return TestClient(create_app(tables, settings), follow_redirects=False)


@pytest.fixture(scope="module")
def annotated(tmp_path_factory: pytest.TempPathFactory, settings: Dashboard) -> Iterator[TestClient]:
    root = tmp_path_factory.mktemp("annotated")
    write_story(root)
    annotate(
        root,
        annotation("r42", 9_000, 11_000, groups=["orders*"], text="orders 2.4.1", url="https://ci.example/42?a=b&c"),
        annotation("n1", 60_000, kind="drain", hosts=["h1"], text="node 1"),
        annotation("n9", 60_000, kind="drain", hosts=["h9"], text="node 9"),
        annotation("b", 60_000, groups=["billing"], text="billing 7"),
        annotation("long before", -500 * MINUTE, -400 * MINUTE, text="old"),
    )
    with served(root, settings) as client:
        yield client


def section(page: str, heading: str) -> str:
    """Return the section with a heading; empty if there is none."""
    found = re.search(rf"<section><header><h2>{heading}</h2>.*?</section>", page, re.DOTALL)
    return found[0] if found else ""


def test_the_timeline_has_those_that_concern_the_group_or_its_members(annotated: TestClient) -> None:
    found = annotated.get("/api/v1/timeline", params=TIMELINE).json()
    assert found["annotations"] == [
        {
            "at": T0 + 9_000,
            "until": T0 + 11_000,
            "kind": "deploy",
            "text": "orders 2.4.1",
            "concerns": "group orders*",
            "url": "https://ci.example/42?a=b&c",
        },
        {"at": T0 + 60_000, "until": None, "kind": "drain", "text": "node 1", "concerns": "host h1", "url": None},
    ]
    narrow = annotated.get("/api/v1/timeline", params={**TIMELINE, "since": T0 + 12_000, "until": T0 + 59_000}).json()
    assert narrow["annotations"] == []


def test_the_page_of_a_group_lists_what_its_timeline_marks(annotated: TestClient) -> None:
    page = annotated.get(GROUP).text
    listed = section(page, "What was done")
    assert re.findall(r"orders 2\.4\.1|node \d|billing 7|old", listed) == ["node 1", "orders 2.4.1"]
    assert 'href="https://ci.example/42?a=b&amp;c" rel="noopener noreferrer nofollow"' in listed
    assert "each at the bottom an annotation" in page


def test_the_page_of_a_rebalance_lists_what_lay_near_it(annotated: TestClient) -> None:
    listed = section(annotated.get("/rebalance", params={"id": THIRD}).text, "What was done then")
    assert re.findall(r"orders 2\.4\.1|node \d|billing 7|old", listed) == ["node 1", "orders 2.4.1"]
    assert "began 10.0 s before, its end is not known" in listed
    assert section(annotated.get("/rebalance", params={"id": FIRST}).text, "What was done then") == ""


def test_without_annotations_pages_have_no_such_part(client: TestClient) -> None:
    assert section(client.get(GROUP).text, "What was done") == ""
    assert section(client.get("/rebalance", params={"id": THIRD}).text, "What was done then") == ""
    assert "an annotation" not in client.get(GROUP).text


def test_the_listing_has_those_of_a_cluster_and_those_of_any(annotated: TestClient) -> None:
    def ids(**parameters: str) -> list[str]:
        rows = annotated.get("/api/v1/annotations", params=parameters).json()["rows"]
        return [row["annotation_id"] for row in rows]

    assert ids(kind="drain", sort="-kind") == ["n1", "n9"]
    assert ids(cluster="c1", q="2.4") == ["r42"]
    assert ids(until=str(T0)) == ["long before"]
    assert ids(at=str(T0 + 10_000)) == ["r42"]


def test_hostile_texts_are_shown_and_are_never_markup(tmp_path: Path, settings: Dashboard) -> None:
    write_story(tmp_path)
    annotate(
        tmp_path,
        *(
            annotation(f"{number}", 69_000, text=text, kind=text[:50] or "x", url=text if number % 2 else None)
            for number, text in enumerate(HOSTILE)
        ),
    )
    with served(tmp_path, settings) as client:
        pages = [client.get(GROUP).text, client.get("/rebalance", params={"id": THIRD}).text]
        timeline = client.get("/api/v1/timeline", params=TIMELINE)
    for page, heading in zip(pages, ("What was done", "What was done then"), strict=True):
        listed = section(page, heading)
        assert listed.count("<tr>") == 1 + len(HOSTILE)
        elements = set(re.findall(r"<(\w+)", listed))
        assert elements <= {"section", "header", "h2", "span", "div", "table", "caption", "thead", "tbody", "tr"} | {
            "th", "td", "time", "a", "small", "abbr", "p", "bdi"
        }  # fmt: skip
        # Only http and https become links, whoever wrote the table.
        assert re.findall(r"<a [^>]*>", listed) == []
        assert printable(listed.replace("\n", "")).count("\\x1b") == listed.count("\\x1b")
    assert len(timeline.json()["annotations"]) == len(HOSTILE)
    assert timeline.text.isprintable()
