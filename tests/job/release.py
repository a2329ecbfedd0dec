"""A checkpoint and tables as a release left them, small enough to keep.

    python -m tests.job.release

writes those of this version, and their events, into ``tests/job/releases``: once, when it is released. A checkpoint
names the folders of its job, so they are always in the same place.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from tests.job.commands import CONFIG, MONITOR, once
from tests.job.recordings import cut, disordered, fleet_lines, write_files

RELEASES = Path(__file__).parent / "releases"
_OF_ITS_MACHINE = ("lock", "spark.log", "_liveness", "*.reader")
_PLACE = Path("/tmp/rebalance-monitor-release")


class Release(NamedTuple):
    """What a release left.

    Attributes:
        place: Where its folders are: events, tables and checkpoint. read: The events that its job had read.
        unread: Those that came afterwards.
    """

    place: Path
    read: list[bytes]
    unread: list[bytes]


@contextmanager
def unpacked(archive: Path) -> Iterator[Release]:
    """Have what a release left in its place."""
    with _in_place() as place:
        with tarfile.open(archive) as packed:
            packed.extractall(place, filter="data")
        texts = [[path.read_bytes() for path in sorted((place / name).iterdir())] for name in ("events", "unread")]
        yield Release(place, *texts)


@contextmanager
def _in_place() -> Iterator[Path]:
    """Have the folder for oneself, and empty."""
    with _PLACE.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(_PLACE, ignore_errors=True)
        _PLACE.mkdir()
        try:
            yield _PLACE
        finally:
            shutil.rmtree(_PLACE)


def _write(archive: Path) -> None:
    with _in_place() as folder:
        (folder / "monitor.toml").write_text(CONFIG)
        texts = cut(disordered(fleet_lines(seed=20, duration_ms=60_000), seed=20), 4)
        write_files(folder / "events", texts[:2])
        write_files(folder / "unread", texts[2:], first=2)
        job = [*MONITOR, *map(str, once(folder / "events", folder, folder / "monitor.toml"))]
        subprocess.run(job, check=True)
        with tarfile.open(archive, "w:xz") as packed:
            for part in ("events", "unread", "checkpoint", "tables"):
                packed.add(folder / part, part, filter=_without_owner)


def _without_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if any(Path(entry.name).match(pattern) for pattern in _OF_ITS_MACHINE):
        return None
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def main() -> None:
    """Write what this version leaves."""
    RELEASES.mkdir(exist_ok=True)
    archive = RELEASES / f"{version('rebalance-monitor')}.tar.xz"
    _write(archive)
    sys.stdout.write(f"{archive.name}: {archive.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()
