"""Shell: temporary files of this process and its JVM; the next process removes leftovers of a killed one."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from streaming.setup.errors import SetupError

_PREFIX = "rebalance-monitor-"
_LOCK, _UNHELD_LOCK = "lock", "lock.unheld"
# The JVM may take this long to clean up after itself, or to write the archive of its classes.
_JVM_END_S = 60.0


@cache
def scratch_folder() -> Path:
    """Return this process's own folder in the machine's temporary one; it is deleted when the process ends.

    A killed process leaves its folder. Its lock is free then, so that any later start removes it.

    Raises:
        SetupError: There is no space for it.
    """
    temporary = Path(tempfile.gettempdir())
    remove_abandoned(temporary)
    try:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=temporary))
        # The lock is held until this process ends. The folder gets its name only then, so no other process can take it
        # before.
        lock = os.open(folder / _UNHELD_LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        (folder / _UNHELD_LOCK).rename(folder / _LOCK)
    except OSError as error:
        raise SetupError(
            f"{temporary} cannot be written: {error.strerror}", "Name another folder for temporary files in TMPDIR."
        ) from error
    atexit.register(_remove_own, folder)
    return folder


def remove_abandoned(temporary: Path) -> None:
    """Remove the folders of ended processes of this user."""
    for folder in temporary.glob(f"{_PREFIX}*"):
        try:
            if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
                continue
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue  # another process is creating or removing it
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        else:
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)


def _remove_own(folder: Path) -> None:
    _end_jvm()
    shutil.rmtree(folder, ignore_errors=True)


def _end_jvm() -> None:
    """Wait until the JVM that this process started has ended, because it writes into the folder until then."""
    from pyspark import SparkContext

    jvm = getattr(SparkContext._gateway, "proc", None)
    if jvm is None:
        return
    # The end of the pipe shows that its parent has ended.
    jvm.stdin.close()
    try:
        jvm.wait(_JVM_END_S)
    except subprocess.TimeoutExpired:
        jvm.kill()
