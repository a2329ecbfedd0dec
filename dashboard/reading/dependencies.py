"""Dashboard: records which tables a computation reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_noted: ContextVar[set[str] | None] = ContextVar("noted", default=None)


@contextmanager
def noted_reads() -> Iterator[set[str]]:
    """Yield the names of the tables that this thread reads in the block, including through cached results.

    Example:
        >>> with noted_reads() as tables:
        ...     note_reads(["groups"])
        >>> tables
        {'groups'}
    """
    around = _noted.get()
    found: set[str] = set()
    token = _noted.set(found)
    try:
        yield found
    finally:
        _noted.reset(token)
        if around is not None:
            around |= found


@contextmanager
def unnoted_reads() -> Iterator[None]:
    """Let reads in the block be of no page's concern: what takes long is computed on request, not with each change."""
    token = _noted.set(None)
    try:
        yield
    finally:
        _noted.reset(token)


def note_reads(tables: Iterable[str]) -> None:
    """Record that these tables are read, for the enclosing blocks."""
    found = _noted.get()
    if found is not None:
        found.update(tables)
