"""Shell: where something is kept: a folder of this machine, or a URI of a store."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import TypeAlias

# A path is a folder of this machine, a text the URI of a store.
Location: TypeAlias = Path | str

_STORES = ("s3", "abfss", "gs", "hdfs")


def location_of(value: object) -> Location:
    """Read a path or URI; ``s3a`` is another name of ``s3``.

    Raises:
        ValueError: It is neither.
    """
    text = str(value)
    if not text.strip() or "\0" in text:
        raise ValueError("is not a folder; . is the folder in which the command runs")
    scheme, is_uri, rest = text.partition("://")
    if not is_uri:
        return Path(text)
    if scheme == "file":
        return Path("/" + rest.lstrip("/"))
    scheme = "s3" if scheme == "s3a" else scheme
    if scheme not in _STORES:
        raise ValueError(f"has the scheme {scheme}; a folder, file, {', '.join(_STORES)} and s3a are known")
    if not rest.strip("/"):
        raise ValueError("names no bucket")
    return f"{scheme}://{rest.rstrip('/')}"


def absolute(location: Location) -> Location:
    """Return where it is, whatever folder a command runs in."""
    return location.absolute() if isinstance(location, Path) else location


def hand_on(options: Mapping[str, str], env: MutableMapping[str, str]) -> None:
    """Put options of stores where delta-rs and Hadoop look for them; variables that are set already have precedence."""
    for name, value in options.items():
        env.setdefault(name, value)
