"""The page of decisions counts the lines of each room; `python -m tests.docs.test_decisions_page` counts them anew."""

from __future__ import annotations

import re

from tests import rooms

PAGE = rooms.ROOT / "docs" / "decisions.md"
_TABLE = re.compile(r"(?<=<!-- the lines of code -->\n).*(?=<!-- end of the lines of code -->)", re.DOTALL)
# A figure is out of date once it is off by more than this share: not every change renews the page.
_TOLERANCE = 0.25


def counted() -> dict[str, int]:
    """Return the lines of Python below each top folder of the product and each of its rooms, as ``wc -l`` has them."""
    found: dict[str, int] = {}
    for top in rooms.PRODUCT:
        found[top] = 0
        for path in sorted((rooms.ROOT / top).rglob("*.py")):
            lines = path.read_bytes().count(b"\n")
            found[top] += lines
            room = "/".join(path.relative_to(rooms.ROOT).parts[:2])
            if not room.endswith(".py"):
                found[room] = found.get(room, 0) + lines
    return found


def shown() -> dict[str, int]:
    """Return the lines of each room that the page shows."""
    found = _TABLE.search(PAGE.read_text(encoding="utf-8"))
    assert found is not None
    rows = re.findall(r"^\| `([\w/]+)` \| ([\d,]+) \|$", found[0], re.MULTILINE)
    return {room: int(lines.replace(",", "")) for room, lines in rows}


def table() -> str:
    rows = [f"| `{room}` | {lines:,} |" for room, lines in counted().items()]
    return "\n".join(["| room | lines |", "|---|---|", *rows]) + "\n"


def test_the_lines_of_each_room_are_about_those_of_the_page() -> None:
    lines = counted()
    on_page = shown()
    assert list(on_page) == list(lines), "count them anew: python -m tests.docs.test_decisions_page"
    wrong = {room: (now, lines[room]) for room, now in on_page.items() if abs(now / lines[room] - 1) > _TOLERANCE}
    assert wrong == {}, "count them anew: python -m tests.docs.test_decisions_page"


if __name__ == "__main__":
    PAGE.write_text(_TABLE.sub(lambda _: table(), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
