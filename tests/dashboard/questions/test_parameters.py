"""Parameters of questions as they come in an address."""

from __future__ import annotations

import pytest

from dashboard.questions.catalog import question
from dashboard.questions.parameters import bounded, given_in

NOW_MS = 1_767_225_600_007


def test_times_may_be_spans_before_now() -> None:
    given = given_in(question("who-owned"), {"at": "15m"}, NOW_MS)
    assert given == {"at": NOW_MS - 900_000}


def test_texts_become_times_numbers_and_texts_and_empty_ones_are_left_out() -> None:
    texts = {"topic": "7", "queue": "7", "at": "2026-01-01T00:00:00.007Z", "cluster": "", "limit": "-1"}
    given = given_in(question("who-owned"), texts, NOW_MS)
    assert given == {"topic": "7", "queue": 7, "at": 1_767_225_600_007, "limit": -1}


@pytest.mark.parametrize(
    "texts",
    [{"nonsense": "1"}, {"at": "noon"}, {"queue": "x"}, {"queue": "1e3"}, {"queue": "9" * 10_000}, {"queue": "٣"}],
)
def test_invalid_parameters_are_refused_in_a_short_sentence(texts: dict[str, str]) -> None:
    with pytest.raises(ValueError) as caught:
        given_in(question("who-owned"), texts, NOW_MS)
    assert len(str(caught.value)) < 200


def test_a_limit_is_bounded_and_wrong_ones_are_refused() -> None:
    chosen = question("most-rebalances")
    assert [bounded(chosen, given, 500)["limit"] for given in ({}, {"limit": 7}, {"limit": 1_000_000})] == [100, 7, 500]
    with pytest.raises(ValueError, match="limit"):
        bounded(chosen, {"limit": 0}, 500)
