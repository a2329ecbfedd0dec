"""Shell: times, spans and queues as text. No I/O."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import Any


def time_text(epoch_ms: int) -> str:
    """Write a time as RFC 3339 in UTC.

    Example:
        >>> time_text(1767225600007)
        '2026-01-01T00:00:00.007Z'
    """
    time = datetime.datetime.fromtimestamp(epoch_ms // 1_000, datetime.UTC)
    return f"{time:%Y-%m-%dT%H:%M:%S}.{epoch_ms % 1_000:03d}Z"


def brief_time_text(epoch_ms: int) -> str:
    """Write a time in a narrow space: to the second, without the year, in UTC.

    Example:
        >>> brief_time_text(1767225600007)
        '01-01 00:00:00'
    """
    return f"{datetime.datetime.fromtimestamp(epoch_ms // 1_000, datetime.UTC):%m-%d %H:%M:%S}"


def span_of_time(ms: int) -> str:
    """Write a span for people.

    Example:
        >>> span_of_time(250), span_of_time(3200), span_of_time(125_000), span_of_time(7_260_000)
        ('250 ms', '3.2 s', '2 min 5 s', '2 h 1 min')
    """
    if ms < 1_000:
        return f"{ms} ms"
    if ms < 60_000:
        return f"{ms / 1_000:.1f} s"
    if ms < 3_600_000:
        return f"{ms // 60_000} min {ms % 60_000 // 1_000} s"
    return f"{ms // 3_600_000} h {ms % 3_600_000 // 60_000} min"


def between(least_ms: int | None, most_ms: int | None) -> str:
    """Write a span with two known bounds, only one, or none.

    Example:
        >>> between(4002, 8325), between(3, 1010), between(4002, None), between(None, None), between(6000, 6003)
        ('4.0 s to 8.3 s', 'up to 1.0 s', 'at least 4.0 s', 'unknown', '6.0 s')
    """
    least = span_of_time(least_ms or 0)
    if most_ms is None:
        return "unknown" if not least_ms else f"at least {least}"
    most = span_of_time(most_ms)
    if least == most:
        return most
    return f"up to {most}" if (least_ms or 0) * 10 < most_ms else f"{least} to {most}"


def age_text(ms: int) -> str:
    """Write how long ago something was, in one unit.

    Example:
        >>> age_text(-5), age_text(59_999), age_text(7_199_999), age_text(172_800_000)
        ('0s', '59s', '119m', '2d')
    """
    for unit, length_ms, most in (("s", 1_000, 120), ("m", 60_000, 120), ("h", 3_600_000, 48)):
        if ms < length_ms * most:
            return f"{max(0, ms) // length_ms}{unit}"
    return f"{ms // 86_400_000}d"


def second_text(epoch_ms: int) -> str:
    """Write a time as RFC 3339 in UTC, to the second.

    Example:
        >>> second_text(1767225600007)
        '2026-01-01T00:00:00Z'
    """
    return f"{time_text(epoch_ms)[:19]}Z"


def span_text(span_ms: int) -> str:
    """Write a span for people.

    Example:
        >>> span_text(900), span_text(61_000), span_text(3_723_000), span_text(200_000_000)
        ('1 s', '1 min 1 s', '1 h 2 min', '2 d 7 h')
    """
    seconds = max(1, round(span_ms / 1_000))
    for unit_s, unit, next_s, next_unit in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= unit_s:
            return f"{seconds // unit_s} {unit} {seconds % unit_s // next_s} {next_unit}"
    return f"{seconds} s"


def count(number: int, thing: str) -> str:
    """Write a number with its noun.

    Example:
        >>> count(1, "queue"), count(0, "queue")
        ('1 queue', '0 queues')
    """
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def counted(number: int, thing: str) -> str:
    """Write a number that may be large with its noun.

    Example:
        >>> counted(1, "group"), counted(12345, "group")
        ('1 group', '12,345 groups')
    """
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def queue_name(topic: str, broker: str | None, queue_id: int) -> str:
    """Name one queue.

    Example:
        >>> queue_name("orders", None, 3), queue_name("orders", "broker-a", 3), queue_name("orders", None, -1)
        ('orders-3', 'orders@broker-a-3', 'orders (shared by message)')
    """
    place = topic if broker is None else f"{topic}@{broker}"
    return f"{place} (shared by message)" if queue_id < 0 else f"{place}-{queue_id}"


def queues_text(queues: Iterable[Mapping[str, Any]] | None) -> str:
    """Write the queues of a member as Kafka's own tools do.

    Example:
        >>> queues_text([{"topic": "t", "broker": None, "queue_id": 0}, {"topic": "t", "broker": None, "queue_id": 2}])
        't(0,2)'
        >>> queues_text(None), queues_text([])
        ('?', '-')
    """
    if queues is None:
        return "?"
    by_place: dict[str, list[str]] = {}
    for queue in queues:
        place = queue["topic"] if queue["broker"] is None else f"{queue['topic']}@{queue['broker']}"
        by_place.setdefault(place, []).append("*" if queue["queue_id"] < 0 else str(queue["queue_id"]))
    return ", ".join(f"{place}({','.join(numbers)})" for place, numbers in by_place.items()) or "-"
