"""Shell: extracts a coordinator's message and its time from a line of any layout: text, or one JSON object. No I/O.

JSON is that of log4j2's ``JsonLayout``, of the templates of ``JsonTemplateLayout`` (ECS, Logstash, GELF, GCP), and the
format of container logs: ``{"log": "...", "time": "..."}``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any, NamedTuple

import msgspec

# A coordinator's line begins like this after the time and the level: "[GroupCoordinator 1]: " or "[GroupCoordinator
# id=1 topic=__consumer_offsets partition=7] ". The class ``GroupMetadata`` of brokers 2.3 to 3.9 logs without it: its
# messages are recognized by their first words.
_MARK = re.compile(
    r"\[GroupCoordinator [^\]]*\]:? |"
    r"(?<!\w)(?=given member\.id |Group leader \[member\.id: |(?:Loaded|Static) member MemberMetadata\()"
)
# If the line names its logger, any other message of that class is also a coordinator's.
_UNMARKED = re.compile(r"kafka\.coordinator\.group\.GroupMetadata\$?[)\"]")
_LEVEL = re.compile(r"\b(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\W+")
# ISO 8601 or log4j's default, if the layout has a time.
_TIME = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)[T ](?P<time>\d\d:\d\d:\d\d)(?:[.,](?P<fraction>\d{1,9}))?"
    r" ?(?P<zone>Z|UTC|[+-]\d\d:?\d\d)?"
)
# The logger's name, if the layout ends with it as Kafka's own does.
_LOGGER = re.compile(r"\s*\((?:org\.apache\.)?kafka\.coordinator\.[\w.$]+\)\s*$")
_START = re.compile("")  # the beginning of a message that has no mark
# JSON fields of the message and of its time, the likeliest first.
_MESSAGES = ("message", "msg", "short_message", "log")
_TIMES = ("@timestamp", "timestamp", "instant", "timeMillis", "time", "ts")
_LEAST_MS = 1e11  # a smaller number counts seconds, because in milliseconds it would be in 1973


class Logged(NamedTuple):
    """A line of a coordinator.

    Attributes:
        at: Epoch milliseconds; None if the line has no readable time.
    """

    at: int | None
    message: str


def coordinator_message(line: str, zone: tzinfo) -> Logged | None:
    """Return the message of a coordinator's line; None for any other line.

    Args:
        zone: The time zone of times without one.

    Example:
        >>> coordinator_message('{"timeMillis":1795375714885,"message":"[GroupCoordinator 0]: Startup complete."}', UTC)
        Logged(at=1795375714885, message='Startup complete.')
    """
    mark = _MARK.search(line)
    if mark is None and _UNMARKED.search(line) is None:
        return None
    start = line.find("{", 0, len(line) if mark is None else mark.start())
    fields = None if start < 0 else _object(line[start:])
    if fields is None:
        mark = mark or _LEVEL.search(line)
        return None if mark is None else _of_text(line, mark, zone)
    text, mark = _message(fields) if mark is not None else _unmarked(fields)
    if mark is None:
        return None  # it is not in the message but, for example, in a thread's name
    logged = _of_text(text, mark, zone)
    times = (_time_in(fields[name], zone) for name in _TIMES if name in fields)
    at = next((time for time in times if time is not None), logged.at)
    return logged._replace(at=_time_of(line[:start], zone) if at is None else at)


def _of_text(text: str, mark: re.Match[str], zone: tzinfo) -> Logged:
    return Logged(_time_of(text[: mark.start()], zone), _LOGGER.sub("", text[mark.end() :].rstrip()))


def _object(text: str) -> dict[str, Any] | None:
    """Return the JSON object of a line, which in a list is followed by a comma."""
    try:
        return msgspec.json.decode(text.rstrip().rstrip(","), type=dict[str, Any])
    except msgspec.DecodeError:
        return None


def _message(fields: Mapping[str, Any]) -> tuple[str, re.Match[str] | None]:
    for name in (*_MESSAGES, *fields):
        text = fields.get(name)
        mark = _MARK.search(text) if isinstance(text, str) else None
        if mark is not None:
            return text or "", mark
    return "", None


def _unmarked(fields: Mapping[str, Any]) -> tuple[str, re.Match[str] | None]:
    """Return the whole message of a line that only its logger's name shows to be a coordinator's."""
    text = next((fields[name] for name in _MESSAGES if isinstance(fields.get(name), str)), "")
    return text, (_LEVEL.search(text) if _LOGGER.search(text) else _START.match(text))


def _time_in(value: object, zone: tzinfo) -> int | None:
    """Return the time in a JSON value: a text, a number, or log4j2's ``instant``."""
    if isinstance(value, str):
        return _time_of(value, zone)
    if isinstance(value, dict):
        second, nano = value.get("epochSecond"), value.get("nanoOfSecond", 0)
        return second * 1_000 + nano // 1_000_000 if isinstance(second, int) and isinstance(nano, int) else None
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        return round(value if value >= _LEAST_MS else value * 1_000)
    return None


def _time_of(text: str, zone: tzinfo) -> int | None:
    """Return the first time in a text in epoch milliseconds; None if it has none."""
    found = _TIME.search(text)
    if found is None:
        return None
    try:
        time = datetime.fromisoformat(f"{found['date']}T{found['time']}")
        offset = found["zone"]
        if offset is not None:
            zone = datetime.fromisoformat(f"2000-01-01T00:00{'Z' if offset in ('Z', 'UTC') else offset}").tzinfo or UTC
    except ValueError:
        return None
    fraction = int(((found["fraction"] or "") + "000")[:3])
    return int(time.replace(tzinfo=zone).timestamp()) * 1_000 + fraction
