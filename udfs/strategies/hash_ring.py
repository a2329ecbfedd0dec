"""Core: the ring of points on which both consistent-hash strategies find owners. No I/O."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Mapping


def md5(text: str) -> bytes:
    """Return the MD5 of a text's UTF-8; characters without UTF-8 count as ``?``, as in Java."""
    return hashlib.md5(text.encode("utf-8", "replace"), usedforsecurity=False).digest()


class HashRing:
    """Points on a circle of 32-bit numbers, each with the id that owns the arc before it."""

    def __init__(self, owners: Mapping[int, str]) -> None:
        self._points = sorted(owners)
        self._owners = [owners[point] for point in self._points]

    def owner(self, point: int) -> str | None:
        """Return the owner of the first point at or after this one, else of the first of all; None if empty."""
        if not self._points:
            return None
        place = bisect_left(self._points, point)
        return self._owners[place if place < len(self._points) else 0]
