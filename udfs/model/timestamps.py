"""Core: event times on the wire, RFC 3339 or epoch milliseconds, one at a time and in bulk. No I/O.

Everything is floored to milliseconds, whatever the number of digits.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from udfs.model.arrays import Int64

DAY_MS = 86_400_000
EARLIEST_MS = 946_684_800_000  # 2000-01-01T00:00:00Z
LATEST_MS = 4_102_444_800_000  # 2100-01-01T00:00:00Z
UNREAD = np.iinfo(np.int64).min  # in bulk results: a time that only ``read_timestamp`` can parse

TimestampError: TypeAlias = Literal["unparsable", "without_zone"]

_RFC_3339 = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt ]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(?:([Zz])|([+-])([0-9]{2}):([0-9]{2}))?"
)
# Arrow parses these forms exactly as RFC 3339 defines them; everything else is parsed one by one.
_PLAIN = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})$"
_EPOCH_DAY = datetime.date(1970, 1, 1).toordinal()


def write_timestamp(at_ms: int) -> str:
    """Return a time, in epoch ms, as RFC 3339 in UTC.

    Example:
        >>> write_timestamp(1_784_688_720_123)
        '2026-07-22T02:52:00.123Z'
    """
    at = datetime.datetime.fromtimestamp(at_ms // 1_000, datetime.UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at_ms % 1_000:03}Z"


def read_timestamp(text: str) -> int | TimestampError:
    """Parse an RFC 3339 time.

    Returns: epoch ms, floored; or the reason why it is invalid. A leap second is the first second of the next minute,
    as in POSIX.
    Example:
        >>> read_timestamp("2026-11-21T03:12:00.1239+02:00") - read_timestamp("2026-11-21T01:12:00Z")
        123
        >>> read_timestamp("2026-11-21T03:12:00")
        'without_zone'
    """
    found = _RFC_3339.fullmatch(text)
    if found is None:
        return "unparsable"
    year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
    fraction, zulu, sign, offset_hours, offset_minutes = found.groups()[6:]
    try:
        days = datetime.date(year, month, day).toordinal() - _EPOCH_DAY
    except ValueError:
        return "unparsable"
    if hour > 23 or minute > 59 or second > 60:
        return "unparsable"
    if zulu is None and sign is None:
        return "without_zone"
    minutes = days * 1440 + hour * 60 + minute
    if sign is not None:
        if int(offset_hours) > 23 or int(offset_minutes) > 59:
            return "unparsable"
        offset = int(offset_hours) * 60 + int(offset_minutes)
        minutes += -offset if sign == "+" else offset
    if second == 60 and minutes % 1440 != 1439:
        return "unparsable"
    return minutes * 60_000 + second * 1000 + int((fraction or "")[:3].ljust(3, "0"))


def read_timestamps(times: Sequence[int | str]) -> Int64:
    """Parse many times at once.

    Returns: epoch ms of each; ``UNREAD`` for a time that only ``read_timestamp`` can parse.
    """
    kinds = set(map(type, times))
    if kinds <= {int}:
        return _whole_numbers(times)  # type: ignore[arg-type]
    if kinds == {str}:
        return _texts(times)  # type: ignore[arg-type]
    are_texts = np.array([isinstance(time, str) for time in times])
    read = np.empty(len(times), np.int64)
    read[are_texts] = _texts([time for time in times if isinstance(time, str)])
    read[~are_texts] = _whole_numbers([time for time in times if not isinstance(time, str)])
    return read


def _whole_numbers(times: Sequence[int]) -> Int64:
    try:
        return np.array(times, np.int64)
    except OverflowError:
        return np.array([time if 0 <= time <= LATEST_MS else UNREAD for time in times], np.int64)


def _texts(texts: Sequence[str]) -> Int64:
    column = pa.array(texts, pa.string())
    plain = pc.match_substring_regex(column, _PLAIN)
    if not pc.all(plain).as_py():
        column = pc.if_else(plain, column, pa.scalar(None, pa.string()))
    try:
        nanoseconds = pc.cast(column, pa.timestamp("ns", "UTC")).cast(pa.int64())
    except pa.ArrowInvalid:  # some are a 30th of February, or in a year beyond the range of nanoseconds
        read = (read_timestamp(text) for text in texts)
        return np.array([time if isinstance(time, int) else UNREAD for time in read], np.int64)
    milliseconds: Int64 = np.asarray(nanoseconds.fill_null(UNREAD)) // 1_000_000
    if column.null_count:
        milliseconds[np.asarray(column.is_null())] = UNREAD
    return milliseconds
