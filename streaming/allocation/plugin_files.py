"""Shell: the files of installed custom strategies, as executors need them to import the same ones."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, EntryPoint, entry_points
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import PurePosixPath
from typing import TypeAlias

from streaming.allocation.plugins import GROUP

# A name in an archive on Python's path, and its content.
File: TypeAlias = tuple[str, bytes]

_METADATA = ("METADATA", "entry_points.txt")
_COMPILED = (".so", ".pyd")
_log = logging.getLogger(__name__)


def plugin_files(found: Iterable[EntryPoint] | None = None) -> Iterator[File]:
    """Return the packages that offer strategies, with the metadata by which they are found.

    Dependencies of a package are not included. Compiled code cannot be imported from an archive: such a package is left
    out and logged, and must be installed where the executors run.

    Args:
        found: Entry points; None for all that are installed.
    """
    points: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=GROUP) if found is None else found:
        if point.dist is not None:
            points.setdefault(point.dist.name, []).append(point)
    for name, offered in sorted(points.items()):
        assert offered[0].dist is not None
        of_one = list(_files_of(offered[0].dist, {point.module.partition(".")[0] for point in offered}))
        compiled = [path for path, _ in of_one if path.endswith(_COMPILED)]
        if compiled:
            _log.warning("%s has compiled code and is not sent to executors: install it there (%s)", name, compiled[0])
        else:
            yield from of_one


def package_files(name: str, top: Traversable | None = None) -> Iterator[File]:
    """Return the files of an importable package or module, wherever it is installed, sorted by name."""
    if top is None:
        spec = find_spec(name)
        if spec is not None and spec.submodule_search_locations is None:
            assert spec.origin is not None
            suffix = "".join(PurePosixPath(spec.origin).suffixes[-1:])
            yield f"{name}{suffix}", spec.loader.get_data(spec.origin)  # type: ignore[union-attr]
            return
        top = files(name)
    for entry in sorted(top.iterdir(), key=lambda entry: entry.name):
        if entry.is_file() and not entry.name.endswith(".pyc"):
            yield f"{name}/{entry.name}", entry.read_bytes()
        elif entry.is_dir() and entry.name != "__pycache__":
            yield from package_files(f"{name}/{entry.name}", entry)


def _files_of(dist: Distribution, modules: set[str]) -> Iterator[File]:
    for file in dist.files or ():
        if file.suffix == ".py" and ".." not in file.parts:
            modules.add(file.parts[0].removesuffix(".py"))
    for module in sorted(modules):
        yield from package_files(module)
    for name in _METADATA:
        if (text := dist.read_text(name)) is not None:
            yield f"{dist.name}-{dist.version}.dist-info/{name}", text.encode()
