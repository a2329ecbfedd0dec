"""Core: what every allocation strategy is asked and what it answers. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from udfs.events import QueueInfo, QueueRef


class Participant(msgspec.Struct, frozen=True, kw_only=True):
    """One member as a strategy sees it.

    ``name`` is the id that the client itself goes by: it differs from ``member_id`` only where two live
    connections share one id (``id``, ``id#2``).
    """

    member_id: str
    name: str
    instance_id: str | None = None
    rack: str | None = None
    client_library: str | None = None
    subscriptions: tuple[str, ...] = ()
    strategies: tuple[str, ...] = ()
    owned: tuple[QueueRef, ...] | None = None
    generation: int | None = None
    settings: Mapping[str, object] | None = None  # its own ``strategy_settings``: before the group's


class Topic(msgspec.Struct, frozen=True, kw_only=True):
    """One topic with its queues, ordered by (broker, queue_id)."""

    name: str
    queues: tuple[QueueInfo, ...]
    topic_id: str | None = None


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One question to a strategy: who shall hold which queue?

    Attributes:
        group: The group's name.
        members: In the order in which they joined (it matters in Java's HashMaps).
        topics: Known topics; a subscribed topic that is missing or empty gives nobody anything.
        settings: The strategy's settings, e.g. ``virtual_nodes``.
        leader: The leader's member id, where known.
        previous: For server-side strategies: the target assignment before.
    """

    group: str
    members: tuple[Participant, ...]
    topics: Mapping[str, Topic]
    settings: Mapping[str, object] = msgspec.field(default_factory=dict)
    leader: str | None = None
    previous: Mapping[str, tuple[QueueRef, ...]] | None = None


# member_id -> its queues; every member of the problem is a key. Two members may hold one queue only where the
# real clients would (duplicate ids, members with different strategies, broadcasting).
Assignment: TypeAlias = dict[str, list[QueueRef]]
Strategy: TypeAlias = Callable[[Problem], Assignment]
