"""Core: when a queue whose commit stands has waited for too long. No I/O."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from udfs.model.arrays import Int64
from udfs.model.config import CoreConfig
from udfs.model.observations import UNKNOWN

NEVER: Final = 2**62  # later than every time
# A usual wait is stored as a logarithm: 1 for a second, and this much more for each doubling; 240 is twelve days.
STEPS: Final = 12
# Until a queue has been committed this often, how much it lacks is stored with it, in multiples of YOUNG.
COMMITS_OF_HISTORY: Final = 8
YOUNG: Final = 300
_LOOKS_IN_FLOOR = 3
_MOST_EVERY_MS = 60_000


class StallRule(NamedTuple):
    """When a queue has waited for too long.

    Attributes:
        every_ms: Groups are evaluated at the end of each span of event time of this length. floor_ms: Shorter waits are
            never too long. factor: So many times as long as usual is too long. first_ms: The least limit for a queue
            with too little history.
    """

    every_ms: int
    floor_ms: int
    factor: float
    first_ms: int

    @classmethod
    def of(cls, config: CoreConfig) -> StallRule:
        """Return the rule of some settings."""
        every = max(1, min(config.stalled_after_ms // _LOOKS_IN_FLOOR, _MOST_EVERY_MS))
        first = max(config.stalled_first_ms, config.stalled_after_ms)
        return cls(every, config.stalled_after_ms, config.stalled_factor, first)

    def passes(self, before: int | None, clock: int) -> bool:
        """Return whether an evaluation lies between two values of the clock."""
        return before is None or before // self.every_ms < clock // self.every_ms

    def limits(self, usual: Int64) -> Int64:
        """Return how long queues may wait, by their usual waits."""
        limits = np.ceil(np.exp2((np.maximum(usual, 1) - 1) % YOUNG / STEPS) * (1_000 * self.factor))
        least = np.where((usual == UNKNOWN) | (usual > YOUNG), self.first_ms, self.floor_ms)
        return np.maximum(np.minimum(limits, NEVER // 4).astype(np.int64), least)

    def next_looks(self, times: Int64) -> Int64:
        """Return the first evaluation at or after each time: the last millisecond of its span."""
        return (times // self.every_ms + 1) * self.every_ms - 1

    def next_look(self, time: int) -> int:
        """Return the first evaluation at or after a time."""
        return (time // self.every_ms + 1) * self.every_ms - 1
