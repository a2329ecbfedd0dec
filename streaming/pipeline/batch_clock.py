"""Shell: the durations of batches, by part, summed since the start and since the journal's last commit."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from streaming.tables.commit_notes import WRITING, BatchTimes, note_of


class BatchClock:
    """Sums the durations of batches; the thread that writes removes them, another one adds.

    Attributes:
        sources: Additional content of each note, see ``BatchTimes``.
    """

    def __init__(self) -> None:
        self.sources: dict[str, str] = {}
        self.totals: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._writing = 0
        self._begin()

    def _begin(self) -> None:
        self._batches = self._events = 0
        self._ms: Counter[str] = Counter()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Count the duration of the block as the tables' part of the running batch."""
        began = time.monotonic()
        yield
        with self._lock:
            self._writing += round(1_000 * (time.monotonic() - began))

    def ended(self, events: int, durations: Mapping[str, int]) -> None:
        """Add a finished batch."""
        with self._lock:
            parts = {**durations, WRITING: self._writing}
            self._writing = 0
            self._batches += 1
            self._events += events
            self._ms.update(parts)
            self.totals.update(parts)

    def drain_note(self) -> str:
        """Return the times added since the last call, as a commit's note; empty if there were none."""
        with self._lock:
            if not self._batches:
                return ""
            taken = BatchTimes(self._batches, self._events, dict(self._ms), self.sources)
            self._begin()
        return note_of(taken)
