"""Shell: a file that exists completely or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def write_atomically(path: Path, content: bytes, *, modified_ns: int | None = None) -> None:
    """Write a file atomically and durably.

    Args:
        modified_ns: Its time of modification, for readers that use it; None for now.

    Raises:
        OSError: It was not written; the unfinished file is removed.
    """
    hidden = path.with_name(f".{path.name.lstrip('.')}.tmp")
    try:
        with hidden.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if modified_ns is not None:
            os.utime(hidden, ns=(modified_ns, modified_ns))
        hidden.replace(path)
    except OSError:
        # On a full disk, half a file would occupy the remaining space.
        with contextlib.suppress(OSError):
            hidden.unlink()
        raise
    # The name is synced too. Not every file system can sync folders; the file exists anyway.
    with contextlib.suppress(OSError):
        _sync(path.parent)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
