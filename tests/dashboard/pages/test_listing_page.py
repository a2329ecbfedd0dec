"""What an address asks of a listing."""

from __future__ import annotations

import pytest

from dashboard.pages import columns
from dashboard.pages.listing_page import listing_page, parameters_of
from dashboard.reading.listing_query import BadQuestionError
from dashboard.reading.listings import FINDINGS, GROUPS
from dashboard.reading.questions import Reading


def test_filters_order_and_page_come_from_the_address(reading: Reading) -> None:
    asked = {"q": "ord", "cluster": "", "sort": "-members", "page": "1"}
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


@pytest.mark.parametrize("asked", [{"page": "0"}, {"page": "x"}, {"page": "²"}, {"page": "9" * 9}, {"colour": "red"}])
def test_what_is_unknown_is_refused(asked: dict[str, str]) -> None:
    with pytest.raises(BadQuestionError):
        parameters_of(asked, GROUPS)
