"""Dashboard: templates, and their filters, addresses and cells of tables."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import jinja2

from dashboard.pages import cells, page_addresses
from dashboard.pages.elements import amount, shown, span, timed, when
from dashboard.pages.page_columns import filled_columns
from dashboard.pages.words import word
from streaming.terminal.causes import describe_cause
from streaming.terminal.escape import printable
from streaming.terminal.format import counted, queues_text, span_text, time_text
from streaming.views.phase_texts import phases_text, times_text

FOLDER = Path(__file__).resolve().parents[1]
STATIC = FOLDER / "static"


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
    found.filters.update(timed=timed, counted=counted, word=word, long=span_text, clock=time_text)
    found.filters.update(phases=phases_text, phase_times=times_text)
    functions: dict[str, Any] = {
        name: getattr(page_addresses, name)
        for name in (
            *("address", "advice_address", "client_address", "group_address", "host_address", "member_address"),
            *("rebalance_address", "topic_address", "next_sort"),
        )
    }
    functions |= {
        name: getattr(cells, name)
        for name in ("table_rows", "health", "members", "outage", "repeated", "truth", "waiting", "ways")
    }
    found.globals.update(functions, filled_columns=filled_columns, assets=assets_version(), printable=printable)
    return found
