"""Shell: exclusive use of a place: a lock of the operating system, or a lease on a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from streaming.machine.file_lock import exclusive_lock
from streaming.stores.places import Place

# A function of this type raises when the locked place may no longer be written.
Guard: TypeAlias = Callable[[], None]


@contextmanager
def exclusive_use(lock: Place, *, problem: str, remedy: str) -> Iterator[Guard]:
    """Hold a lock while inside.

    Args:
        lock: A file whose folder must exist; on a store the folder of a lease.
        problem: The error's text if another process holds it. remedy: What users may do then.

    Raises:
        SetupError: Another process holds it.
        OSError: The place cannot be written.
    """
    if isinstance(lock, Path):
        with exclusive_lock(lock, problem=problem, remedy=remedy):
            yield lambda: None
        return
    # The import is here, so that commands without a store do not wait for delta-rs to load.
    from streaming.stores.lease import Lease

    lease = Lease(lock, problem=problem, remedy=remedy)
    lease.acquire()
    try:
        yield lease.check
    finally:
        lease.release()


def all_of(*guards: Guard) -> Guard:
    """Return a guard that raises if any of these does."""

    def check() -> None:
        for guard in guards:
            guard()

    return check
