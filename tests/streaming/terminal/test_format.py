"""Times, spans and queues as text."""

from __future__ import annotations

import pytest

from streaming.terminal.format import count, queue_name, queues_text, span_of_time


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1_000, "1.0 s"),
        (59_949, "59.9 s"),
        (60_000, "1 min 0 s"),
        (3_599_999, "59 min 59 s"),
        (3_600_000, "1 h 0 min"),
        (90_000_000, "25 h 0 min"),
    ],
)
def test_a_span_has_two_units_at_most(ms: int, text: str) -> None:
    assert span_of_time(ms) == text


def test_a_count_of_one_has_no_plural() -> None:
    assert [count(number, "queue") for number in (0, 1, 2)] == ["0 queues", "1 queue", "2 queues"]


def test_a_queue_has_its_broker_where_there_is_one() -> None:
    assert queue_name("t", "b", 0) == "t@b-0"
    assert queue_name("t", None, 0) == "t-0"
    assert queue_name("t", "b", -1) == "t@b (shared by message)"


def test_unreported_differs_from_empty() -> None:
    queues = [
        {"topic": "t", "broker": broker, "queue_id": number} for broker, number in ((None, 2), ("b", -1), (None, 0))
    ]
    assert queues_text(queues) == "t(2,0), t@b(*)"
    assert (queues_text(None), queues_text([])) == ("?", "-")
