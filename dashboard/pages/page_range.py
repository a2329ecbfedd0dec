"""Dashboard: the range of time in a page's address, kept from page to page, and the ways to another one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard.pages.page_addresses import RANGE, address, keeping
from dashboard.reading.listing_query import BadQuestionError
from dashboard.reading.questions import Reading
from dashboard.reading.time_range import DEFAULT, PRESETS, TimeRange

TITLES = {"15m": "15 min", "1h": "1 h", "6h": "6 h", "24h": "24 h", "7d": "7 d"}


def kept_parameters(parameters: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters of an address that name its range."""
    return {name: parameters[name] for name in RANGE if parameters.get(name)}


def range_of(reading: Reading, parameters: Mapping[str, str]) -> TimeRange:
    """Return the range that an address names, or the default.

    Args:
        parameters: ``range`` is a preset; ``from`` and ``to`` are times as ``parse_time`` takes them. Without ``from``
            it is the day before ``to``; without ``to`` it ends now.

    Raises:
        BadQuestionError: There is no such preset, a time is none, or the range is empty.
    """
    kept = kept_parameters(parameters)
    name = kept.pop("range", "")
    if name and name not in PRESETS:
        raise BadQuestionError(f"range: {name[:50]!r} is not one of {', '.join(PRESETS)}; or give from and to")
    if name and kept:
        raise BadQuestionError(f"range: it is given beside {' and '.join(kept)}; a page takes either")
    if not kept:
        return TimeRange.preset(reading, name, is_chosen=bool(name))
    return TimeRange.between(reading, kept.get("from", ""), kept.get("to", ""), ("from", "to"))


def range_bar(path: str, parameters: Mapping[str, str], span: TimeRange, *, is_shown: bool) -> dict[str, Any]:
    """Return what the bar of ranges shows: the presets with their addresses, and the span.

    Args:
        path: That of the page, with the parameters of its address.
        is_shown: False for a page that shows all times unless a range is chosen, as long as none is.
    """
    others = {name: value for name, value in parameters.items() if name not in (*RANGE, "page")}
    with keeping({}):
        return {
            "presets": [
                {
                    "title": TITLES[name],
                    # The default stays out of addresses, unless a page shows all times by default.
                    "address": address(path, others, range="" if name == DEFAULT and is_shown else name),
                    "is_current": is_shown and span.name == name,
                }
                for name in PRESETS
            ],
            "span": span if is_shown else None,
            "is_custom": is_shown and not span.name,
            "others": others,
            "path": path,
            "everything": address(path, others) if span.is_chosen else "",
        }
