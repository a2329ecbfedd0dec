"""The parameters of an address, as a listing reads them."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from dashboard.app import create_app
from dashboard.pages import page_columns
from dashboard.pages.listing_page import listing_page, parameters_of
from dashboard.reading.listing_query import BadQuestionError
from dashboard.reading.listings import FINDINGS, GROUPS
from dashboard.reading.questions import Reading
from streaming.settings.model import load
from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.schema import TABLES
from streaming.tables.writer import Mark
from tests.streaming.tables.journals import T0
from tests.streaming.tables.signs import leave_recording_sign


def test_filters_order_and_page_come_from_the_address(reading: Reading) -> None:
    requested = {"q": "ord", "cluster": "", "sort": "-members", "page": ""}
    found = listing_page(reading, GROUPS, page_columns.GROUPS, "/", requested)
    assert [row["group_id"] for row in found["rows"]] == ["orders"]
    assert found["here"] == {"q": "ord", "sort": "-members"}
    assert (found["data"], found["data_note"]) == ("/api/v1/groups?q=ord&sort=-members&limit=10000", "")
    assert (found["first"], found["last"], found["total"], found["pages"]) == (1, 1, 1, 1)


def test_a_default_filter_holds_until_the_address_has_another(reading: Reading) -> None:
    assert listing_page(reading, FINDINGS, page_columns.FINDINGS, "/findings", {}, (), {"open": "no"})["total"] == 0
    found = listing_page(reading, FINDINGS, page_columns.FINDINGS, "/findings", {"open": "any"}, (), {"open": "no"})
    assert found["total"] == 1


def test_a_page_shows_what_was_open_at_its_time_and_offers_the_same_as_data(reading: Reading) -> None:
    requested = {"open": "any", "until": str(T0 + 70_000)}
    assert listing_page(reading, FINDINGS, page_columns.FINDINGS, "/findings", requested)["total"] == 0
    requested["until"] = str(T0 + 70_001)
    found = listing_page(reading, FINDINGS, page_columns.FINDINGS, "/findings", requested)
    assert found["total"] == 1
    assert found["data"] == f"/api/v1/findings?until={T0 + 70_001}&limit=10000"


@pytest.mark.parametrize(
    "requested",
    [
        {"page": "0"},
        {"page": "x"},
        {"page": "²"},
        {"page": "9" * 9},
        {"page": "1000001"},
        {"page": "1000000999999999999"},
        {"page": "9" * 9_999},
        {"colour": "red"},
        {"since": "0"},
    ],
)
def test_unknown_parameters_are_refused(requested: dict[str, str]) -> None:
    with pytest.raises(BadQuestionError):
        parameters_of(requested, GROUPS)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """1,250 groups, one finding in each, every second one closed; at most 400 rows in an answer."""
    root = tmp_path_factory.mktemp("many")
    groups, findings = [], []
    for number in range(1_250):
        group = {"cluster": "c", "group_id": f"g{number:04}"}
        groups.append(group | {"system": "kafka", "state": "stable", "last_rebalance_at": T0, "members": number % 7})
        closed = T0 + 1 if number % 2 else None
        finding = {"finding_id": f"f{number}", "kind": "k", "severity": "warning", "message": "m", "advice": "a"}
        findings.append(group | finding | {"evidence": [], "opened_at": T0, "closed_at": closed})
    for table, rows in ((TABLES["groups"], groups), (TABLES["findings"], findings)):
        DeltaRsTable(root, table).append(to_arrow(table, rows), Mark("job", 1))
    leave_recording_sign(root, {"c"})
    given = {
        "dashboard.allowed_hosts": ["testserver"],
        "dashboard.max_rows": 400,
        "dashboard.requests_per_second": 9_999,
    }
    with TestClient(create_app(root, load(overrides=given).dashboard)) as client:
        yield client


def names_and_links(page: str) -> tuple[list[str], list[str]]:
    """Return the groups that a page shows, and the addresses of its downloads."""
    links = [html.unescape(link) for link in re.findall(r'href="(/api/v1/(?:groups|findings)[^"]*)"', page)]
    return re.findall(r'k-group"><a href="[^"]*"><bdi class="id">(g\d+)', page), links


@pytest.mark.parametrize(
    "path", ["/?sort=-members", "/?sort=group_id&q=g0", "/findings?sort=-group_id", "/findings?open=any"]
)
def test_the_downloads_of_each_page_have_the_rows_that_it_shows(many: TestClient, path: str) -> None:
    rows, number, pages = [], 1, 1
    while number <= pages:
        page = many.get(f"{path}&page={number}").text
        shown, (as_csv, as_json) = names_and_links(page)
        answer, file = many.get(as_json).json(), many.get(as_csv)
        listed = [row["group_id"] for row in answer["rows"]]
        # Those of the page come one after the other, and are the first of a download that begins with them.
        begin = listed.index(shown[0])
        assert listed[begin : begin + len(shown)] == shown
        assert begin == (0 if 100 * number > 400 else 100 * (number - 1))
        assert [row["group_id"] for row in csv.DictReader(io.StringIO(file.text))] == listed
        assert file.headers["x-total-count"] == str(answer["total"])
        assert ("next" in file.links) == (answer["next_cursor"] is not None)
        first = 100 * (number - 1) + 1 if 100 * number > 400 else 1
        assert (f"rows {first:,} to " in page) == (answer["total"] > 400)
        rows += shown
        pages, number = -(-answer["total"] // 100), number + 1
    assert len(rows) == answer["total"] > 600 or "q=" in path
