"""The rooms of the product and their imports, from the code; `python -m tests.rooms` redraws `ARCHITECTURE.md`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PRODUCT = ("udfs", "streaming", "dashboard")
ARCHITECTURE = ROOT / "ARCHITECTURE.md"
_BEGIN, _END = "<!-- drawn by python -m tests.rooms -->\n```text\n", "```\n<!-- end of the drawing -->"


def modules(top: str) -> list[Path]:
    """Return the modules below a folder of the checkout, packages' own files left out: sorted."""
    return sorted(path for path in (ROOT / top).rglob("*.py") if path.name != "__init__.py")


def rooms() -> list[str]:
    """Return the folders with code, as dotted names: sorted."""
    return sorted({_room(path) for top in PRODUCT for path in modules(top)})


@cache
def imports() -> dict[str, list[str]]:
    """Return for each room, those inside it included, the other rooms that it imports when it runs: sorted."""
    found: dict[str, set[str]] = {}
    for top in PRODUCT:
        for path in sorted((ROOT / top).rglob("*.py")):
            own = _outer(_room(path))
            named = {
                _outer(room)
                for name in _imported(ast.parse(path.read_text(encoding="utf-8")))
                if (room := _room_of(name))
            }
            found.setdefault(own, set()).update(named - {own})
    return {room: sorted(others) for room, others in sorted(found.items())}


def drawing() -> str:
    """Return the import graph as lines of text, the room with the most below it first.

    What a room reaches through another one that it imports is left out.

    Raises:
        RecursionError: Two rooms import each other.
    """
    graph = imports()
    below: dict[str, set[str]] = {}

    def reach(room: str) -> set[str]:
        if room not in below:
            below[room] = set(graph[room]).union(*map(reach, graph[room]))
        return below[room]

    lines = []
    for room in sorted(graph, key=lambda room: (-len(reach(room)), room)):
        top = room.split(".")[0]
        nearest = set(graph[room]) - set().union(*map(reach, graph[room]))
        others = [other.removeprefix(f"{top}.") for other in sorted(nearest)]
        lines.append(f"{room.ljust(20)} -> {', '.join(others) or 'nothing'}\n")
    return "".join(lines)


def drawn() -> str:
    """Return the import graph as it is shown."""
    return ARCHITECTURE.read_text(encoding="utf-8").split(_BEGIN)[1].split(_END)[0]


def redraw() -> None:
    """Write the import graph into the page that shows it."""
    before, rest = ARCHITECTURE.read_text(encoding="utf-8").split(_BEGIN)
    ARCHITECTURE.write_text(before + _BEGIN + drawing() + _END + rest.split(_END)[1], encoding="utf-8")


def _outer(room: str) -> str:
    return ".".join(room.split(".")[:2])


def _room(path: Path) -> str:
    return ".".join(path.parent.relative_to(ROOT).parts)


def _room_of(name: str) -> str | None:
    parts = name.split(".")
    if parts[0] not in PRODUCT:
        return None
    while parts and not (ROOT.joinpath(*parts)).is_dir():
        parts.pop()
    return ".".join(parts)


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in _run(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _run(node: ast.AST) -> Iterator[ast.AST]:
    """Walk what runs: imports for the type checker alone are left out."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
            continue
        yield child
        yield from _run(child)


if __name__ == "__main__":
    redraw()
