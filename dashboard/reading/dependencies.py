"""Dashboard: which tables a computation reads, noted while it reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_noted: ContextVar[set[str] | None] = ContextVar("noted", default=None)


@contextmanager
def noted_reads() -> Iterator[set[str]]:
    """Yield the names of the tables that are read in the block, by this thread, also by way of results that are kept.

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


def note_reads(tables: Iterable[str]) -> None:
    """Note that these tables are read, for the blocks around."""
    found = _noted.get()
    if found is not None:
        found.update(tables)
