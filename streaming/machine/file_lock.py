"""Shell: what only one process may use at a time: a lock that is released with the process, however it ends."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streaming.setup.errors import SetupError

# Some network file systems know no locks: there, nothing is guarded.
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL})


@contextmanager
def exclusive_lock(lock_file: Path, *, problem: str, remedy: str) -> Iterator[None]:
    """Hold the lock while inside. The file stays; its folder must be there.

    Raises:
        SetupError: Another holds it, which is then the problem.
        OSError: The file cannot be made.
    """
    lock = os.open(lock_file, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SetupError(problem, remedy) from error
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
        yield
    finally:
        os.close(lock)
