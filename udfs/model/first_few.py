"""Core: many names as a short text. No I/O."""

from __future__ import annotations

from collections.abc import Sequence


def first_few(names: Sequence[str], most: int) -> str:
    """Return names as a text; if there are more than ``most``, only the first ones and the number of the others.

    Example:
        >>> first_few(["a", "b"], 2), first_few(["a", "b", "c", "d"], 2)
        ('a, b', 'a, b and 2 more')
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
