"""Shell: the section ``alerts``: where findings are sent, how often, and when not."""

from __future__ import annotations

import datetime
import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr

from streaming.settings.sections import BearerToken, Folder, Pattern, Section, SomeCount, SomeSpan, Span, pattern

# These channels have settings of their own; state and logs use these names.
_OWN_CHANNELS = ("webhook", "alertmanager")
_CHANNEL = re.compile(r"[a-z0-9][a-z0-9_-]{0,49}")
_WINDOW = re.compile(r"(\S+?)/(\S+?)((?: (?:cluster|group)=\S+)*)")


def _url(address: SecretStr) -> SecretStr:
    text = address.get_secret_value()
    if text and not _is_url(text):
        raise ValueError("is not an address that begins with http:// or https://")
    return address


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        port, host = parts.port, (parts.hostname or "").encode("idna")
        text.encode()
    except ValueError:  # a part is not a header; the error's text may contain secrets
        return False
    return parts.scheme in ("http", "https") and bool(host) and port != 0 and text.isprintable() and " " not in text


def _channel(name: str) -> str:
    if not _CHANNEL.fullmatch(name) or name in _OWN_CHANNELS:
        raise ValueError(
            f"a channel's name has up to 50 letters a-z, digits, - and _, and is not {' or '.join(_OWN_CHANNELS)}"
        )
    return name


def _window(text: str) -> str:
    match = _WINDOW.fullmatch(text)
    try:
        times = [datetime.datetime.fromisoformat(match[number]) for number in (1, 2)] if match else []
        is_span = bool(times) and times[0] < times[1] and all(time.tzinfo is not None for time in times)
    except (ValueError, TypeError):
        is_span = False
    if not is_span or match is None:
        raise ValueError(f"{text!r} is not FROM/UNTIL [cluster=PATTERN] [group=PATTERN], both times with their zone")
    for part in match[3].split():
        pattern(part.partition("=")[2])
    return text


def _template(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty")
    return text


Url = Annotated[SecretStr, AfterValidator(_url)]
Channel = Annotated[str, AfterValidator(_channel)]
Window = Annotated[str, AfterValidator(_window)]
Template = Annotated[str, AfterValidator(_template)]


class Alerts(Section):
    state_file: Folder
    poll_interval_ms: SomeSpan
    min_severity: Literal["info", "warning", "critical"]
    ignored_findings: tuple[str, ...]
    groups: tuple[Pattern, ...]
    group_wait_ms: Span
    cool_down_ms: Span
    max_findings: SomeCount
    maintenance: tuple[Window, ...]
    retry_first_ms: SomeSpan
    retry_most_ms: SomeSpan
    resolve_for_ms: Span
    timeout_ms: SomeSpan
    title: Template
    text: Template
    link: str = Field(pattern=r"^(https?://\S+)?$")
    webhook_url: Url
    webhook_token: BearerToken
    alertmanager_url: Url
    alertmanager_refresh_ms: SomeSpan
    channels: dict[Channel, SecretStr]


def in_maintenance(windows: tuple[str, ...], cluster: str, group: str, now_ms: int) -> bool:
    """Return whether a group is in one of the windows at a time."""
    for window in windows:
        match = _WINDOW.fullmatch(window)
        assert match is not None, "windows are checked when settings are read"
        begin, end = (datetime.datetime.fromisoformat(match[number]).timestamp() * 1_000 for number in (1, 2))
        wanted = dict(part.split("=", 1) for part in match[3].split())
        if (
            begin <= now_ms < end
            and re.fullmatch(wanted.get("cluster", ".*"), cluster, re.DOTALL)
            and re.fullmatch(wanted.get("group", ".*"), group, re.DOTALL)
        ):
            return True
    return False
