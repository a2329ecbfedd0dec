"""Shell: the location of the files of `conf/`: in a checkout, in an installed wheel, or in a zip on Python's path."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

_PACKAGE = files("streaming")
# The wheel, and the zip for executors, have a copy inside the package; a checkout has conf/ at its root.
_PLACES: tuple[Traversable, ...] = (
    _PACKAGE / "conf",
    *([_PACKAGE.parent / "conf"] if isinstance(_PACKAGE, Path) else []),
)


def conf_folder() -> Traversable:
    """Return the folder with all files of `conf/`."""
    return next(place for place in _PLACES if place.is_dir())


def conf_file(name: str) -> Traversable:
    """Return a file of `conf/` for reading; inside a zip it has no path.

    Raises:
        FileNotFoundError: The project has no such file.
    """
    for place in _PLACES:
        if (place / name).is_file():
            return place / name
    raise FileNotFoundError(f"conf/{name} is in none of {', '.join(map(str, _PLACES))}")


@contextmanager
def conf_path(name: str) -> Iterator[Path]:
    """Provide a file of `conf/` on the disk, for other programs, until the block is left.

    Raises:
        FileNotFoundError: The project has no such file.
    """
    found = conf_file(name)
    if isinstance(found, Path):
        yield found
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / name
        copy.write_bytes(found.read_bytes())
        yield copy
