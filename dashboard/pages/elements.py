"""Dashboard: values as elements of a page: text, escaped for HTML, with invisible characters written out."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

from streaming.terminal.escape import printable
from streaming.terminal.format import span_of_time, time_text

# A longer id is cut in the middle, and complete in its title and on its own page.
SHOWN_LENGTH = 48
TITLE_LENGTH = 1_000
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)")
DASH = Markup('<span class="none">–</span>')


def shown(value: object, length: int = SHOWN_LENGTH) -> Markup:
    """Return an id as an element of its own, in which nothing is markup, breaks the line or changes its direction."""
    text = printable(str(value))
    if len(text) <= length:
        return Markup(f'<bdi class="id">{escape(text)}</bdi>')
    short = f"{text[: length - 20]}…{text[-19:]}"
    title = escape(text[:TITLE_LENGTH])
    return Markup(f'<bdi class="id" title="{title}">{escape(short)}</bdi>')


def when(epoch_ms: int | None) -> Markup:
    """Return a time as an element in UTC, which the page converts to local time on request."""
    if epoch_ms is None:
        return DASH
    text = time_text(epoch_ms)
    return Markup(f'<time datetime="{text}">{text[:10]} {text[11:19]}</time>')


def timed(text: str) -> Markup:
    """Return a sentence whose times, RFC 3339 in UTC to the second, become elements as in ``when``."""
    parts = _TIME.split(printable(text)[:TITLE_LENGTH])
    return Markup("").join(_time(part) if number % 2 else escape(part) for number, part in enumerate(parts))


def _time(text: str) -> Markup:
    return Markup(f'<time datetime="{text}">{text[:10]} {text[11:19]}</time>')


def amount(number: float | None) -> Markup:
    """Return a number with separated thousands."""
    return DASH if number is None else escape(f"{number:,}")


def span(ms: int | None) -> Markup:
    """Return a span of time."""
    return DASH if ms is None else escape(span_of_time(ms))
