"""Shell: a file that is there whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file that is there whole or not at all, and stays there when the power goes."""
    hidden = path.with_name(f".{path.name.lstrip('.')}.tmp")
    with hidden.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    hidden.replace(path)
