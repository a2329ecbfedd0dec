"""Core: the settings that the core decides by, as one frozen value. No I/O.

No field has a default: those are in ``conf/default.toml`` alone. The shell builds a ``CoreConfig`` once, of the
settings with the same names, and every worker gets the same one with the function.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec


class CoreConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What the user may choose about time, limits and defaults. Times and spans in ms.

    Attributes:
        session_timeouts_ms: For members that report none, by system.
        flapping_within_ms, flapping_rebalances, flapping_factor, flapping_after_ms, flapping_history_ms,
            flapping_always: When a group rebalances too often, see ``udfs/group/state/flapping.py``.
        stuck_after_ms: How long a group may rebalance, where its source shows it.
        max_departed_members: Of each group: remembered descriptions of departed members.
        max_group_work: Of each group in one batch: members + queues of its rebalances; the rest waits.
        max_waiting_events: Of each shard: beyond it the oldest are applied before their time.
        queue_progress_ms: The span of event time of one row of ``queue_progress``; 0: none.
        max_progress_queues: Of each shard: queues of groups whose offsets are remembered.
    """

    shards: int
    allowed_lateness_ms: int
    session_timeouts_ms: Mapping[str, int]
    settle_ms: int
    repeat_span_ms: int
    forget_after_ms: int
    silence: Literal["wait", "expire"]
    source_silent_after_ms: int
    max_clock_skew_ms: int
    max_event_bytes: int
    raw_limit_bytes: int
    max_departed_members: int
    max_group_work: int
    max_waiting_events: int
    vote_tie_order: Literal["1.0", "4.x"]
    flapping_within_ms: int
    flapping_rebalances: int
    flapping_factor: float
    flapping_after_ms: int
    flapping_history_ms: int
    flapping_always: int
    stuck_after_ms: int
    queue_progress_ms: int
    max_progress_queues: int
