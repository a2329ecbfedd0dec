"""Shell: checks, before a slow start, whether a folder is writable. Nothing is created for it."""

from __future__ import annotations

import errno
import os
from pathlib import Path


def write_error(folder: Path) -> str | None:
    """Return why files cannot be created in a folder, which may not exist yet; None if they can.

    A full disk is noticed only by writing.
    """
    place = folder.absolute()
    try:
        while not os.path.lexists(place):
            place = place.parent
        if not place.is_dir():
            return f"{place} is not a folder"
    except OSError as error:
        return f"{place}: {error.strerror}"
    if os.statvfs(place).f_flag & os.ST_RDONLY:
        return f"{place}: {os.strerror(errno.EROFS)}"
    if not os.access(place, os.W_OK | os.X_OK):
        return f"{place} is not writable for this user"
    return None
