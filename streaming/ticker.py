"""Shell: ticks, where the user chose that silence expires."""

from __future__ import annotations

import time
from pathlib import Path

from streaming.checkpoint import ControlFolder
from streaming.settings import Settings
from streaming.tables import GROUPS
from streaming.views.reading import Reader
from streaming.wall_clock import now_ms


class Ticker:
    """Moves the clocks on where the user chose that silence expires: ticks, as files that replay."""

    def __init__(self, settings: Settings, control: ControlFolder, tables: Path) -> None:
        self._wanted = settings.time.silence == "expire"
        self._control = control
        self._tables = tables
        self._every_s = max(1.0, settings.job.trigger_interval_ms / 1000)
        self._last = time.monotonic()

    def tick_if_due(self, *, caught_up: bool) -> None:
        """Write a tick, only when the last batch ended at the newest offsets: else it would run ahead of events."""
        if not self._wanted or not caught_up or time.monotonic() - self._last < self._every_s:
            return
        self._last = time.monotonic()
        clusters = clusters_in(self._tables)
        if clusters:
            now = now_ms()
            self._control.mark("tick", {cluster: {"time": now} for cluster in clusters})


def clusters_in(tables: Path) -> list[str]:
    """Answer the clusters that the tables know."""
    return sorted(set(Reader(tables).read(GROUPS.name, columns=["cluster"])["cluster"].to_pylist()))
