"""The clock of a machine as processes see it that are started with it: set ahead and back while they run.

By libfaketime, Debian's package, which is installed when it is missing and that is allowed. The time since boot and
sleeps go on as they are, as on a machine whose clock somebody sets.

A process with clients of librdkafka must never see a clock behind the right time: libfaketime lets their waits hang.
One that is ahead and set right shows what a clock does that is set back.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

REMEDY = "apt install libfaketime (Debian, Ubuntu), and run the tests again"
_ROOT = Path(__file__).parents[2]
# The library takes Python's sleep, which ends at a time since boot, for one that ends at a time of day.
_SLEEP = "import select\nimport time\n\ntime.sleep = lambda seconds: select.select((), (), (), seconds)\n"


class MachineClock:
    """A clock that is right until it is set.

    Attributes:
        environment: What a process is started with to see it.
        ahead_ms: How far it is ahead of this process's clock.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / "machine-clock"
        self.ahead_ms = 0
        self.set(0)
        self._site = folder / "machine-clock-site"
        self._site.mkdir()
        (self._site / "sitecustomize.py").write_text(_SLEEP)
        self.environment: Mapping[str, str] = {
            "LD_PRELOAD": str(_library()),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": "1",
            "DONT_FAKE_MONOTONIC": "1",
            # Else waits of the JVM end at once.
            "FAKETIME_FORCE_MONOTONIC_FIX": "0",
            # Times of files stay what they are.
            "NO_FAKE_STAT": "1",
            "PYTHONPATH": f"{self._site}:{_ROOT}",
        }

    def set(self, ahead_s: int) -> None:
        """Set it so far ahead of the right time; negative: behind."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{ahead_s:+d}\n")
        new.replace(self._file)
        self.ahead_ms = 1_000 * ahead_s


@cache
def _library() -> Path:
    """Return the library.

    Raises:
        RuntimeError: It is not there and cannot be installed; the message has the remedy.
    """
    if _found() is None and os.geteuid() == 0:
        env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for step in (["update"], ["install", "--yes", "--no-install-recommends", "libfaketime"]):
            with contextlib.suppress(OSError):
                subprocess.run(["apt-get", *step], env=env, capture_output=True, timeout=300, check=False)
    found = _found()
    if found is None:
        raise RuntimeError(f"libfaketime is missing: {REMEDY}")
    return found


def _found() -> Path | None:
    return next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))), None)
