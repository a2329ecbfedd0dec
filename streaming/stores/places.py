"""Shell: folders of this machine and of stores, used in the same way."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote

from streaming.machine.atomic_file import write_atomically
from streaming.settings.locations import Location
from streaming.stores.store_path import StorePath

# A place is a file or folder of this machine or of a store.
Place: TypeAlias = Path | StorePath


def place_of(location: Location) -> Place:
    """Return the place of a location; a local one does not depend on where a command runs."""
    return location.absolute() if isinstance(location, Path) else StorePath(location)


def write_whole(place: Place, content: bytes, *, modified_ns: int | None = None) -> None:
    """Write a file that appears whole or not at all, and is durable then.

    Args:
        modified_ns: Its time of modification if that can be chosen, as on a disk. None for now.

    Raises:
        OSError: It was not written.
    """
    if isinstance(place, StorePath):
        place.write_bytes(content)
    else:
        write_atomically(place, content, modified_ns=modified_ns)


def hadoop_uri(place: Place | str) -> str:
    """Return the name of a place for Spark and Hadoop; a path is on this machine, whatever Hadoop's default store is.

    Example:
        >>> hadoop_uri(StorePath("s3://lake/checkpoint"))
        's3a://lake/checkpoint'
        >>> hadoop_uri("/var/lib/checkpoint")
        'file:///var/lib/checkpoint'
    """
    text = str(place)
    if text.startswith("/"):
        return f"file://{text}"
    return f"s3a{text.removeprefix('s3')}" if text.startswith("s3://") else text


def place_named(name: str, options: Mapping[str, str] | None = None) -> Place:
    """Return the place for a name given by Spark, with its path as in a URL.

    Args:
        options: Options of the access to a store.

    Example:
        >>> place_named("file:///var/a%20b%23c.json").as_posix()
        '/var/a b#c.json'
        >>> place_named("s3a://lake/a%20b.json")
        StorePath('s3://lake/a b.json')
    """
    found = re.match("(?!file:)([a-z0-9]+)://", name)
    if found is not None:
        scheme = "s3" if found[1] == "s3a" else found[1]
        return StorePath(f"{scheme}://{unquote(name[found.end() :], errors='surrogateescape')}", options)
    return Path("/" + unquote(name.removeprefix("file:"), errors="surrogateescape").lstrip("/"))
