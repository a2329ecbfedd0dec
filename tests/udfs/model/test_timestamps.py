"""Times as RFC 3339 and epoch ms mean them, one by one and in bulk."""

from __future__ import annotations

import datetime

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from udfs.model.timestamps import EARLIEST_MS, LATEST_MS, UNREAD, read_timestamp, read_timestamps, write_timestamp


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:00Z", 0),
        # Examples of RFC 3339, section 5.8; the leap second counts as the first of the next day, as in POSIX.
        ("1985-04-12T23:20:50.52Z", 482_196_050_520),
        ("1996-12-19T16:39:57-08:00", 851_042_397_000),
        ("1990-12-31T23:59:60Z", 662_688_000_000),
        ("1990-12-31T15:59:60-08:00", 662_688_000_000),
        ("1937-01-01T12:00:27.87+00:20", -1_041_337_172_130),
        # Floored, never rounded, however many digits there are.
        ("1970-01-01T00:00:00.0009Z", 0),
        ("1970-01-01T00:00:00.999999999999Z", 999),
        ("1969-12-31T23:59:59.9999Z", -1),
        ("1970-01-01T00:00:00.1Z", 100),
        ("1970-01-01t00:00:00z", 0),
        ("1970-01-01 00:00:00-00:00", 0),
        ("2000-02-29T00:00:00Z", 951_782_400_000),
        ("1970-01-01T00:00:00", "without_zone"),
        ("1970-01-01T00:00:00.5", "without_zone"),
        ("1900-02-29T00:00:00Z", "unparsable"),
        ("1970-01-01T24:00:00Z", "unparsable"),
        ("1970-01-01T00:60:00Z", "unparsable"),
        ("1970-01-01T12:00:60Z", "unparsable"),
        ("1970-01-01T00:00:00.Z", "unparsable"),
        ("1970-01-01T00:00:00,5Z", "unparsable"),
        ("1970-01-01T00:00Z", "unparsable"),
        ("1970-01-01T00:00:00+0100", "unparsable"),
        ("1970-01-01T00:00:00+24:00", "unparsable"),
        ("1970-01-01", "unparsable"),
        ("0000-01-01T00:00:00Z", "unparsable"),
        ("١٩٧٠-01-01T00:00:00Z", "unparsable"),
        ("1970-01-01T00:00:00Z\n", "unparsable"),
        ("", "unparsable"),
    ],
)
def test_a_time_is_read_as_in_rfc_3339(text: str, expected: int | str) -> None:
    assert read_timestamp(text) == expected
    # In bulk the same, or left to be read one by one.
    (bulk,) = read_timestamps([text]).tolist()
    assert bulk in (expected, UNREAD)


def test_epoch_milliseconds_are_taken_as_they_are() -> None:
    assert read_timestamps([5, 1_795_245_120_000, -1]).tolist() == [5, 1_795_245_120_000, -1]


def test_a_number_beyond_64_bits_is_left_to_be_read_alone() -> None:
    assert read_timestamps([5, 10**30, -(10**30)]).tolist() == [5, UNREAD, UNREAD]


def test_texts_and_numbers_may_stand_side_by_side() -> None:
    times = [7, "1970-01-01T00:00:01Z", "nonsense", 9, "1970-01-01T00:00:02z"]
    assert read_timestamps(times).tolist() == [7, 1000, UNREAD, 9, UNREAD]


def test_a_day_that_is_not_in_the_calendar_leaves_its_neighbours_readable() -> None:
    assert read_timestamps(["1970-01-01T00:00:01Z", "1970-02-30T00:00:00Z"]).tolist() == [1000, UNREAD]


_ZONES = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(
    lambda minutes: datetime.timezone(datetime.timedelta(minutes=minutes))
)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@settings(max_examples=300)
@given(
    st.lists(
        st.datetimes(
            datetime.datetime(1990, 1, 1),  # noqa: DTZ001 (hypothesis wants naive bounds)
            datetime.datetime(2110, 1, 1),  # noqa: DTZ001
            timezones=_ZONES,
        ),
        min_size=1,
        max_size=5,
    )
)
def test_bulk_single_and_the_standard_library_agree(times: list[datetime.datetime]) -> None:
    texts = [time.isoformat() for time in times]
    expected = [(time - _EPOCH) // datetime.timedelta(milliseconds=1) for time in times]
    assert [read_timestamp(text) for text in texts] == expected
    assert np.array_equal(read_timestamps(texts), expected)


@given(st.integers(EARLIEST_MS, LATEST_MS))
def test_a_time_that_was_written_is_read_as_the_same(at_ms: int) -> None:
    text = write_timestamp(at_ms)
    assert (read_timestamp(text), len(text)) == (at_ms, len("2026-07-22T02:52:00.123Z"))
