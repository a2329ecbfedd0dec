"""Shell: where the files of `conf/` are, in a checkout and in an installed wheel."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
# A checkout has conf/ beside the package; the wheel carries a copy inside it.
_PLACES = (_PACKAGE.parent / "conf", _PACKAGE / "conf")


def conf_file(name: str) -> Path:
    """Return the path of a file of `conf/`.

    Raises:
        FileNotFoundError: the project has no such file.
    """
    for place in _PLACES:
        if (place / name).is_file():
            return place / name
    raise FileNotFoundError(f"conf/{name} is in none of {', '.join(map(str, _PLACES))}")
