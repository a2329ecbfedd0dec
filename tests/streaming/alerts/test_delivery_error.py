"""Why a request was not accepted, and whether it may be tried again."""

from __future__ import annotations

import pytest

from streaming.alerts.delivery_error import answered, unsendable


@pytest.mark.parametrize(
    ("status", "is_refusal"),
    [
        (400, True),
        (404, True),
        (413, True),
        (422, True),
        *((status, False) for status in (302, 408, 425, 429, 500, 503)),
    ],
)
def test_errors_of_the_request_are_refusals(status: int, is_refusal: bool) -> None:
    error = answered(status, 7)
    assert (str(error), error.retry_after_ms, error.is_refusal) == (f"HTTP {status}", 7, is_refusal)


def test_an_unexpected_error_is_a_refusal_that_does_not_show_its_text() -> None:
    try:
        "schlüssel-SECRET".encode("ascii")
    except UnicodeEncodeError as wrong:
        error = unsendable(wrong)
    assert (str(error), error.is_refusal) == (
        "UnicodeEncodeError in test_an_unexpected_error_is_a_refusal_that_does_not_show_its_text",
        True,
    )
