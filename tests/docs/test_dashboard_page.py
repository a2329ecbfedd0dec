"""The page of the API lists what each listing takes; `python -m tests.docs.test_dashboard_page` renews its table."""

from __future__ import annotations

import re
from pathlib import Path

from dashboard.reading.listing import AT, SEARCH, SINCE, UNTIL, Listing
from dashboard.reading.listings import LISTINGS

PAGE = Path(__file__).parents[2] / "docs" / "dashboard.md"
_TABLE = re.compile(r"(?<=<!-- the listings -->\n).*(?=<!-- end of the listings -->)", re.DOTALL)


def times(listing: Listing) -> str:
    if not listing.times:
        return "not taken: rows are of now"
    names = " to ".join(f"`{name}`" for name in listing.times)
    return f"{names}; else the last 24 hours" if listing.is_recent else names


def table() -> str:
    lines = ["| listing | filters | `since` and `until` |", "|---|---|---|"]
    for name, listing in LISTINGS.items():
        of_time = {0: set(), 1: {SINCE, UNTIL}, 2: {SINCE, UNTIL, AT}}[len(listing.times)]
        assert set(listing.parameters) == {*listing.filters, SEARCH} | of_time
        lines.append(f"| `{name}` | {', '.join(f'`{each}`' for each in listing.filters)} | {times(listing)} |")
    return "\n".join(lines) + "\n"


def test_the_page_lists_what_every_listing_takes() -> None:
    found = _TABLE.search(PAGE.read_text(encoding="utf-8"))
    assert found is not None
    assert found[0] == table()


if __name__ == "__main__":
    PAGE.write_text(_TABLE.sub(lambda _: table(), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
