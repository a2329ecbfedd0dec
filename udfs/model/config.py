"""Core: the settings that decisions depend on, as one frozen value. No I/O.

No field has a default: defaults are only in ``conf/default.toml``. The shell builds a ``CoreConfig`` once, from the
settings with the same names, and every worker gets the same one with the function.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec


class CoreConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The user's settings for time, limits and defaults. Times and spans in ms.

    Attributes:
        session_timeouts_ms: Timeouts by system, for members that report none.
        unread_after_ms: By system, for how long nobody may read a queue, because clients have not learned of it.
        flapping_within_ms, flapping_rebalances, flapping_factor, flapping_after_ms, flapping_history_ms,
            flapping_always: When a group rebalances too often, see ``udfs/group/state/flapping.py``.
        stuck_after_ms: How long a group may rebalance, if its source shows it.
        stalled_after_ms, stalled_factor, stalled_first_ms: When a queue has waited for too long, see
            ``udfs/shard/standstills.py``.
        retention_risk_share: The share of a log before the commit below which messages are at risk to be deleted,
            see ``udfs/group/decision/lost_messages.py``.
        max_departed_members: Limit per group of remembered descriptions of departed members.
        max_group_work: Limit per group and batch of members and queues in its rebalances; the rest waits.
        max_waiting_events: Limit per shard; beyond it the oldest events are applied before their time.
        queue_progress_ms: The span of event time of one row of ``queue_progress``; 0 for no rows.
        max_progress_queues: Limit per shard of queues of groups whose offsets are remembered.
    """

    shards: int
    allowed_lateness_ms: int
    session_timeouts_ms: Mapping[str, int]
    unread_after_ms: Mapping[str, int]
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
    stalled_after_ms: int
    stalled_factor: float
    stalled_first_ms: int
    retention_risk_share: float
    queue_progress_ms: int
    max_progress_queues: int
