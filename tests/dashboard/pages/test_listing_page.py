"""What an address asks of a listing."""

from __future__ import annotations

import pytest

from dashboard.pages import columns
from dashboard.pages.listing_page import listing_page, parameters_of
from dashboard.reading.listing_query import BadQuestionError
from dashboard.reading.listings import FINDINGS, GROUPS
from dashboard.reading.questions import Reading
from tests.streaming.tables.journals import T0


def test_filters_order_and_page_come_from_the_address(reading: Reading) -> None:
    asked = {"q": "ord", "cluster": "", "sort": "-members", "page": ""}
    found = listing_page(reading, GROUPS, columns.GROUPS, "/", asked)
    assert [row["group_id"] for row in found["rows"]] == ["orders"]
    assert found["here"] == {"q": "ord", "sort": "-members"}
    assert found["data"] == "/api/v1/groups?q=ord&sort=-members"
    assert (found["first"], found["last"], found["total"], found["pages"]) == (1, 1, 1, 1)


def test_a_default_filter_holds_until_the_address_has_another(reading: Reading) -> None:
    assert listing_page(reading, FINDINGS, columns.FINDINGS, "/findings", {}, (), {"open": "no"})["total"] == 0
    assert (
        listing_page(reading, FINDINGS, columns.FINDINGS, "/findings", {"open": "any"}, (), {"open": "no"})["total"]
        == 1
    )


def test_a_page_shows_what_was_open_at_its_time_and_offers_the_same_as_data(reading: Reading) -> None:
    asked = {"open": "any", "until": str(T0 + 70_000)}
    assert listing_page(reading, FINDINGS, columns.FINDINGS, "/findings", asked)["total"] == 0
    asked["until"] = str(T0 + 70_001)
    found = listing_page(reading, FINDINGS, columns.FINDINGS, "/findings", asked)
    assert found["total"] == 1
    assert found["data"] == f"/api/v1/findings?until={T0 + 70_001}"


@pytest.mark.parametrize(
    "asked",
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
def test_what_is_unknown_is_refused(asked: dict[str, str]) -> None:
    with pytest.raises(BadQuestionError):
        parameters_of(asked, GROUPS)
