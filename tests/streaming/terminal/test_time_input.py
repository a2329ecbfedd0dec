"""Times as people write them: in options, and in addresses of pages and API."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streaming.terminal.format import brief_time_text, time_text
from streaming.terminal.time_input import parse_time

NOW_MS = 1_767_225_600_007  # 2026-01-01T00:00:00.007Z


@given(st.integers(0, 4_102_444_800_000))
def test_a_time_is_read_as_it_was_written(epoch_ms: int) -> None:
    assert parse_time(time_text(epoch_ms), NOW_MS) == epoch_ms


@given(st.integers(946_684_800_000, 4_102_444_800_000), st.integers(0, 360 * 86_400_000))
@example(1_709_164_800_000, 0)  # 2024-02-29
@example(1_709_164_800_000, 100 * 86_400_000)
def test_a_time_as_tables_show_it_is_the_last_such_one(epoch_ms: int, later_ms: int) -> None:
    assert parse_time(brief_time_text(epoch_ms), epoch_ms + later_ms) == epoch_ms // 1_000 * 1_000


@pytest.mark.parametrize(
    ("text", "epoch_ms"),
    [
        ("1767225600007", 1_767_225_600_007),
        ("0", 0),
        (" 2026-01-01 ", 1_767_225_600_000),
        ("2026-01-01T00:00:00", 1_767_225_600_000),
        ("2026-01-01T01:00:00.0079+01:00", 1_767_225_600_007),
        ("1969-12-31T23:59:59.999Z", -1),
        ("15m", NOW_MS - 900_000),
        ("-5m", NOW_MS - 300_000),
        ("5m ago", NOW_MS - 300_000),
        ("1h30m", NOW_MS - 5_400_000),
        ("1.5h", NOW_MS - 5_400_000),
        ("2d", NOW_MS - 172_800_000),
        ("1w", NOW_MS - 604_800_000),
        ("250ms", NOW_MS - 250),
        ("now", NOW_MS),
        ("Today", NOW_MS - 7),
        ("yesterday", NOW_MS - 7 - 86_400_000),
        ("01-01 12:00:00", 1_767_225_600_000 + 43_200_000),  # ahead by less than a day: clocks differ
    ],
)
def test_times_are_read_as_people_write_them(text: str, epoch_ms: int) -> None:
    assert parse_time(text, NOW_MS) == epoch_ms


@pytest.mark.parametrize(
    "text",
    ["", "noon", "1767225600", "2026-02-30", "2026-01-01T25:00", "15", "m", "15 m", "+15m", "02-30 00:00:00", "9" * 99],
)
def test_an_invalid_time_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time; write 15m or -2h"):
        parse_time(text, NOW_MS)


def test_a_span_that_is_longer_than_time_itself_is_refused() -> None:
    with pytest.raises(ValueError, match="is before 1970"):
        parse_time("999999999w", NOW_MS)
