"""Shell: times, spans and queues as text. No I/O."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping
from typing import Any

# Fewer digits are rather a year or a date.
_EPOCH_MS = re.compile(r"\d{11,14}")


def time_text(epoch_ms: int) -> str:
    """Write a time as RFC 3339 in UTC.

    Example:
        >>> time_text(1767225600007)
        '2026-01-01T00:00:00.007Z'
    """
    time = datetime.datetime.fromtimestamp(epoch_ms // 1_000, datetime.UTC)
    return f"{time:%Y-%m-%dT%H:%M:%S}.{epoch_ms % 1_000:03d}Z"


def parse_time(text: str) -> int:
    """Read a time as people write it: RFC 3339 (UTC without an offset), or epoch milliseconds.

    Raises:
        ValueError: It is none.

    Example:
        >>> [parse_time(text) for text in ("2026-01-01T00:00:00.007Z", "2026-01-01 01:00+01:00", "1767225600007")]
        [1767225600007, 1767225600000, 1767225600007]
    """
    if _EPOCH_MS.fullmatch(text.strip()):
        return int(text)
    try:
        time = datetime.datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise ValueError(f"{text!r} is not a time; write 2026-01-31T03:12:00Z or epoch milliseconds") from error
    if time.tzinfo is None:
        time = time.replace(tzinfo=datetime.UTC)
    return (time - datetime.datetime.fromtimestamp(0, datetime.UTC)) // datetime.timedelta(milliseconds=1)


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
    """Write a span of which two bounds are known, or one of them, or none.

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


def count(number: int, thing: str) -> str:
    """Write a number with its noun.

    Example:
        >>> count(1, "queue"), count(0, "queue")
        ('1 queue', '0 queues')
    """
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def queue_name(topic: str, broker: str | None, queue_id: int) -> str:
    """Name one queue.

    Example:
        >>> queue_name("orders", None, 3), queue_name("orders", "broker-a", 3), queue_name("orders", None, -1)
        ('orders-3', 'orders@broker-a-3', 'orders (shared by message)')
    """
    place = topic if broker is None else f"{topic}@{broker}"
    return f"{place} (shared by message)" if queue_id < 0 else f"{place}-{queue_id}"


def queues_text(queues: Iterable[Mapping[str, Any]] | None) -> str:
    """Write the queues of a member, as Kafka's own tools do.

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
