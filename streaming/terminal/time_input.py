"""Shell: times in users' notation, for options of commands and addresses of pages and API. No I/O."""

from __future__ import annotations

import datetime
import re

HOW_TO_WRITE = "write 15m or -2h (before now), yesterday, 2026-01-31T03:12:00Z or epoch milliseconds"
# Fewer digits are more likely a year or a date. 0 is accepted as the beginning of time.
_EPOCH_MS = re.compile(r"0|\d{11,14}")
_BEFORE_NOW = re.compile(r"-?((?:\d{1,9}(?:\.\d{1,9})?(?:ms|s|m|h|d|w))+)(?:\s+ago)?")
_PART = re.compile(r"([\d.]+)(ms|s|m|h|d|w)")
_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
# Tables show times like this if there is little space: without the year.
_WITHOUT_YEAR = re.compile(r"\d{2}-\d{2} \d{2}:\d{2}:\d{2}")
_DAY_MS = 86_400_000


def parse_time(text: str, now_ms: int) -> int:
    """Parse a time in users' notation into epoch milliseconds.

    It is RFC 3339 (UTC without an offset; a date alone is its beginning), epoch milliseconds, a span before now
    (``15m``, ``-15m``, ``1h30m``), ``now``, or the beginning of ``today`` or ``yesterday`` in UTC. A time without a
    year, as tables show it, is the last such time.

    Raises:
        ValueError: The text is not a time.

    Example:
        >>> now_ms = 1767225600007  # 2026-01-01T00:00:00.007Z
        >>> parse_time("2026-01-01 01:00+01:00", now_ms), parse_time("1767225600007", now_ms)
        (1767225600000, 1767225600007)
        >>> [now_ms - parse_time(text, now_ms) for text in ("15m", "-1.5h", "2d4h", "now", "today", "yesterday")]
        [900000, 5400000, 187200000, 0, 7, 86400007]
        >>> parse_time("12-31 23:59:59", now_ms)
        1767225599000
    """
    text = text.strip()
    if _EPOCH_MS.fullmatch(text):
        return int(text)
    today_ms = now_ms // _DAY_MS * _DAY_MS
    named = {"now": now_ms, "today": today_ms, "yesterday": today_ms - _DAY_MS}.get(text.lower())
    if named is not None:
        return named
    if before := _BEFORE_NOW.fullmatch(text):
        span_ms = sum(round(float(number) * _UNIT_MS[unit]) for number, unit in _PART.findall(before[1]))
        if span_ms > now_ms:
            raise ValueError(f"{text[:50]!r} is before 1970")
        return now_ms - span_ms
    try:
        return _with_year(text, now_ms) if _WITHOUT_YEAR.fullmatch(text) else _epoch_ms(text)
    except ValueError as error:
        raise ValueError(f"{text[:50]!r} is not a time; {HOW_TO_WRITE}") from error


def _with_year(text: str, now_ms: int) -> int:
    year = datetime.datetime.fromtimestamp(now_ms // 1_000, datetime.UTC).year
    # Clocks differ by less than a day; a time further ahead was a year ago.
    for earlier in range(5):  # the 29th of February exists in one year of four
        try:
            time_ms = _epoch_ms(f"{year - earlier}-{text}")
        except ValueError:
            continue
        if time_ms <= now_ms + _DAY_MS:
            return time_ms
    raise ValueError(text)


def _epoch_ms(text: str) -> int:
    time = datetime.datetime.fromisoformat(text)
    if time.tzinfo is None:
        time = time.replace(tzinfo=datetime.UTC)
    return (time - datetime.datetime.fromtimestamp(0, datetime.UTC)) // datetime.timedelta(milliseconds=1)
