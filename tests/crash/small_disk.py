"""A disk of a few megabytes that fills up, or that may not be written, without root: in a namespace of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.job.commands import ManyRuns

_SIZE = "48m"
_ATTEMPTS = 100
# The shell mounts the disk where only the shell itself, and the process that replaces it, can see it.
_MOUNT = f'mount -t tmpfs -o size={_SIZE} tmpfs "$0" && exec "$@"'


class SmallDisk:
    """The disk, and the process that runs on it.

    Args:
        folder: Where it is mounted, for the process alone.
    """

    def __init__(self, folder: Path, runs: ManyRuns) -> None:
        self.folder = folder
        self.runs = runs
        self._ballast = self.path_outside / "ballast"

    @property
    def path_outside(self) -> Path:
        """Return the path under which other processes see it."""
        return Path(f"/proc/{self.runs.pid}/root{self.folder}")

    def copy(self, name: str, to: Path) -> Path:
        """Copy a folder out of it: not every reader finds its way in from outside."""
        return Path(shutil.copytree(self.path_outside / name, to))

    def fill(self, leave_bytes: int) -> None:
        """Leave room for no more than this."""
        room = os.statvfs(self.path_outside)
        with self._ballast.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, room.f_bavail * room.f_frsize - leave_bytes)

    def empty(self) -> None:
        """Give the room back."""
        self._ballast.unlink(missing_ok=True)

    def clear(self) -> None:
        """Delete everything on it."""
        self.allow_writing(True)
        self.empty()
        for folder in self.path_outside.iterdir():
            shutil.rmtree(folder)

    def allow_writing(self, allowed: bool) -> None:
        """Make it read-only as soon as no file is being written, or writable again."""
        within = ["nsenter", "--user", "--mount", "--preserve-credentials", f"--target={self.runs.pid}"]
        options = f"remount,{'rw' if allowed else 'ro'},size={_SIZE}"
        for attempts_left in reversed(range(_ATTEMPTS)):
            done = subprocess.run([*within, "mount", "-o", options, self.folder], capture_output=True, text=True)
            if done.returncode == 0:
                return
            assert attempts_left, done.stderr


@contextmanager
def small_disk(folder: Path, stderr: Path) -> Iterator[SmallDisk]:
    """Mount a small disk at the folder, for a process that runs commands."""
    folder.mkdir()
    runs = ManyRuns(stderr, ["unshare", "--map-root-user", "--mount", "sh", "-c", _MOUNT, folder])
    try:
        # Until it answers, nothing is mounted yet.
        assert runs.run(["allocate", "--help"]).exit_code == 0, stderr.read_text()
        yield SmallDisk(folder, runs)
    finally:
        runs.close()
