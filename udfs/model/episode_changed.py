"""Core: an episode: rebalances of one group with one root. No I/O."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

EpisodeKind: TypeAlias = Literal["topic_discovered", "same_client_again", "rolling_deploy", "scaling", "periodic"]


class EpisodeChanged(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="episode_changed"
):
    """An episode as of its newest rebalance, or of its end: all fields, not a patch."""

    episode_id: str
    episode: EpisodeKind
    began_at: int
    last_at: int
    closed_at: int | None = None
    text: str
    client: str | None = None
    host: str | None = None
    instance_id: str | None = None
    prefix: str | None = None
    topic: str | None = None
    clients: int = 0
    period_ms: int | None = None
    period_of: tuple[str, ...] = ()
    ghost_ms: int | None = None
    rebalances: int
    queues_moved: int
    pause_ms: int | None = None
    queue_pause_ms: int | None = None
    repeated_messages: int | None = None
    earlier_rebalance_ids: tuple[str, ...] = ()
