"""Shell: jobs' liveness next to their tables, read once or repeatedly, and evaluated."""

from __future__ import annotations

import time
from collections.abc import Sequence

from streaming.settings.locations import Location, catalog_schema
from streaming.tables.liveness import JobLiveness, read_liveness
from streaming.views.freshness import Freshness, Now, evaluate_liveness

_AGAIN_AFTER_S = 0.5


def read_freshness(root: Location) -> Freshness:
    """Read and evaluate the jobs' liveness next to the tables; a store that fails once is read once more."""
    reader = LivenessReader(root)
    found = reader.read()
    if found.unread:
        time.sleep(_AGAIN_AFTER_S)
        found = reader.read()
    return found


class LivenessReader:
    """Reads the liveness of jobs repeatedly; while that fails, the last reading counts, and grows old."""

    def __init__(self, root: Location) -> None:
        self._root = root
        self._jobs: Sequence[JobLiveness] = ()
        self._problem = ""

    def read(self, now: Now | None = None) -> Freshness:
        """Read it, and evaluate it at a given time; None for now."""
        if catalog_schema(self._root):
            return Freshness(problem=f"{catalog_schema(self._root)} is read by Spark alone")
        unread = ""
        try:
            self._jobs, self._problem = read_liveness(self._root)
        except OSError as error:
            unread = f"liveness cannot be read: {error.strerror or error}"
        return self.evaluate(now, unread)

    def evaluate(self, now: Now | None = None, unread: str = "") -> Freshness:
        """Evaluate the last reading; ``unread`` says why there is no newer one."""
        return evaluate_liveness(self._jobs, now or Now.read(), unread or self._problem, unread=unread)


def blind_text(root: Location, cluster: str) -> str:
    """Return that the present of a cluster is unknown, since when and why; empty if it is known.

    A cluster that only tables know, without a liveness of a job, is not found here.
    """
    blind = read_freshness(root).blind([cluster])
    return next((f"{cluster} is {lost.text}" for lost in blind if lost.cluster == cluster), "")
