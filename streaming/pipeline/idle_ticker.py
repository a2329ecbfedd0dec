"""Shell: ticks with ``time.silence`` ``expire``, so that members expire although their whole source is silent."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from streaming.machine.clock import now_ms
from streaming.settings.model import Settings
from streaming.spark.checkpoint import ControlFolder

# A tick reads state and writes it back, so ticks are no more frequent than this, however often batches come.
_LEAST_S = 2.0


class IdleTicker:
    """Advances the clocks with ``time.silence`` ``expire``: ticks, as files that replay."""

    def __init__(self, settings: Settings, control: ControlFolder, clusters: Callable[[], Sequence[str]]) -> None:
        self._wanted = settings.time.silence == "expire"
        self._control = control
        self._clusters = clusters
        self._every_s = max(_LEAST_S, settings.job.trigger_interval_ms / 1000)
        self._last = time.monotonic()

    def tick_if_due(self, caught_up: Callable[[], bool]) -> Sequence[str]:
        """Write a tick, but only if the last batch ended at the newest offsets; otherwise it would run ahead of events.

        Returns: the clusters whose clocks advance, because their silence is evidence.
        """
        if not self._wanted or time.monotonic() - self._last < self._every_s or not caught_up():
            return ()
        self._last = time.monotonic()
        clusters = self._clusters()
        if clusters:
            now = now_ms()
            self._control.mark("tick", {cluster: {"time": now} for cluster in clusters})
        return clusters
