"""Times, spans and queues as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.terminal.format import count, parse_time, queue_name, queues_text, span_of_time, time_text


@given(st.integers(0, 4_102_444_800_000))
def test_a_time_is_read_as_it_was_written(epoch_ms: int) -> None:
    assert parse_time(time_text(epoch_ms)) == epoch_ms


@pytest.mark.parametrize(
    ("text", "epoch_ms"),
    [
        ("1767225600007", 1_767_225_600_007),
        (" 2026-01-01 ", 1_767_225_600_000),
        ("2026-01-01T00:00:00", 1_767_225_600_000),
        ("2026-01-01T01:00:00.0079+01:00", 1_767_225_600_007),
        ("1969-12-31T23:59:59.999Z", -1),
    ],
)
def test_times_are_read_as_people_write_them(text: str, epoch_ms: int) -> None:
    assert parse_time(text) == epoch_ms


@pytest.mark.parametrize("text", ["", "noon", "1767225600", "2026-02-30", "2026-01-01T25:00"])
def test_what_is_no_time_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="write 2026-01-31T03:12:00Z or epoch milliseconds"):
        parse_time(text)


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


def test_one_of_a_thing_has_no_plural() -> None:
    assert [count(number, "queue") for number in (0, 1, 2)] == ["0 queues", "1 queue", "2 queues"]


def test_a_queue_has_its_broker_where_there_is_one() -> None:
    assert queue_name("t", "b", 0) == "t@b-0"
    assert queue_name("t", None, 0) == "t-0"
    assert queue_name("t", "b", -1) == "t@b (shared by message)"


def test_what_is_not_reported_differs_from_nothing() -> None:
    queues = [
        {"topic": "t", "broker": broker, "queue_id": number} for broker, number in ((None, 2), ("b", -1), (None, 0))
    ]
    assert queues_text(queues) == "t(2,0), t@b(*)"
    assert (queues_text(None), queues_text([])) == ("?", "-")
