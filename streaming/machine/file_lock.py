"""Shell: a lock for what only one process may use at a time, released with the process, however it ends."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streaming.machine.clock import now_ms
from streaming.setup.errors import SetupError

# Some network file systems have no locks; nothing is guarded there.
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL})
_MOST_BYTES = 1024


@contextmanager
def exclusive_lock(lock_file: Path, *, problem: str, remedy: str) -> Iterator[None]:
    """Hold the lock while inside. The file stays, with its last holder; its folder must exist.

    Raises:
        SetupError: Another process holds it, and is named.
        OSError: The file cannot be created.
    """
    lock = os.open(lock_file, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SetupError(f"{problem}{_holder(lock)}", remedy) from error
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
        # This text only serves the errors of other processes, so a full disk does not prevent the lock.
        with contextlib.suppress(OSError):
            os.ftruncate(lock, 0)
            os.pwrite(lock, f"{os.getpid()} {now_ms()} {socket.gethostname()}".encode(), 0)
        yield
    finally:
        os.close(lock)


def _holder(lock: int) -> str:
    """Return the holder of the lock, and for how long, as it wrote; empty if unknown."""
    try:
        pid, since_ms, host = os.pread(lock, _MOST_BYTES, 0).decode().split()
        return f": process {int(pid)} on {host} has held it for {max(0, now_ms() - int(since_ms)) // 1000} s"
    except (OSError, ValueError):
        return ""
