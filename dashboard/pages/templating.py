"""Dashboard: templates, in which every value is text: escaped for HTML, with what cannot be seen written out."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from dashboard.pages import addresses
from streaming.terminal.causes import describe_cause
from streaming.terminal.escape import printable
from streaming.terminal.format import queues_text, span_of_time, time_text
from streaming.views.phases import phases_text, times_text

FOLDER = Path(__file__).resolve().parents[1]
STATIC = FOLDER / "static"
# A longer id is cut in the middle, and whole in its title and on its own page.
SHOWN_LENGTH = 48
TITLE_LENGTH = 1_000


def shown(value: object, length: int = SHOWN_LENGTH) -> Markup:
    """Return an id as an element of its own: nothing in it is markup, moves the line or turns its direction."""
    text = printable(str(value))
    short = text if len(text) <= length else f"{text[: length - 20]}…{text[-19:]}"
    title = "" if short == text else Markup(' title="{}"').format(text[:TITLE_LENGTH])
    return Markup('<bdi class="id"{}>{}</bdi>').format(title, short)


def when(epoch_ms: int | None) -> Markup:
    """Return a time as an element: UTC, which the page turns to local time where that is wanted."""
    if epoch_ms is None:
        return Markup('<span class="none">–</span>')
    text = time_text(epoch_ms)
    return Markup('<time datetime="{}">{} {}</time>').format(text, text[:10], text[11:19])


def amount(number: float | None) -> Markup:
    """Return a number with its thousands apart."""
    return Markup('<span class="none">–</span>') if number is None else escape(f"{number:,}")


def span(ms: int | None) -> Markup:
    """Return a span of time."""
    return Markup('<span class="none">–</span>') if ms is None else escape(span_of_time(ms))


def assets_version() -> str:
    """Return a text that changes with every static file."""
    digest = hashlib.sha256()
    for path in sorted(STATIC.rglob("*")):
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def environment() -> jinja2.Environment:
    """Return the environment of all templates."""
    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(shown=shown, when=when, amount=amount, span=span, queues=queues_text, cause=describe_cause)
    found.filters.update(phases=phases_text, phase_times=times_text)
    functions: dict[str, Any] = {
        name: getattr(addresses, name)
        for name in ("address", "group_address", "member_address", "rebalance_address", "next_sort")
    }
    found.globals.update(functions, assets=assets_version(), printable=printable)
    return found
