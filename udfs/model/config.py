"""Core: the settings that the core decides by, as one frozen value. No I/O.

The defaults for users live in ``conf/default.toml``; the shell builds a ``CoreConfig`` from it once, and
every worker gets the same one with the function.
"""

from __future__ import annotations

from typing import Literal

import msgspec


class CoreConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What the user may choose about time, limits and defaults. Times and spans in ms."""

    shards: int = 8
    allowed_lateness_ms: int = 2_000
    kafka_session_timeout_ms: int = 45_000
    rocketmq_session_timeout_ms: int = 120_000
    metaq_session_timeout_ms: int = 30_000
    settle_ms: int = 0
    repeat_span_ms: int = 600_000
    forget_after_ms: int = 7 * 86_400_000
    silence: Literal["wait", "expire"] = "wait"
    source_silent_after_ms: int = 60_000
    max_clock_skew_ms: int = 600_000
    max_event_bytes: int = 16 * 1024 * 1024
    raw_limit_bytes: int = 64 * 1024
    max_departed_members: int = 256  # per group: remembered descriptions of departed members
    max_group_work: int = 1_000_000  # per group and batch: members + queues of its rebalances; the rest waits
    max_waiting_events: int = 1_000_000  # per shard: then the oldest are applied before their time
    vote_tie_order: Literal["1.0", "4.x"] = "4.x"

    def session_timeout_ms(self, system: str) -> int:
        """Return the system's default session timeout."""
        return {
            "kafka": self.kafka_session_timeout_ms,
            "rocketmq": self.rocketmq_session_timeout_ms,
            "metaq": self.metaq_session_timeout_ms,
        }[system]
