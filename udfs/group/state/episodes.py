"""Core: what a group remembers of its newest rebalances, and the episodes that these belong to. No I/O."""

from __future__ import annotations

from typing import Final

import msgspec

from udfs.model.episode_changed import EpisodeKind

# A group remembers at most this many rebalances, the newest, and none that is older: four beats of the longest period
# that has a name, and a crash loop with the longest back-off, fit into it.
MAX_ROOTS = 32
ROOTS_KEPT_MS = 3_600_000
# At most this many clients are remembered of a rebalance, in the order of its causes, and this many topics.
MAX_ROOT_CLIENTS = 32
MAX_ROOT_TOPICS = 4
# At most this many episodes are open; beyond it the one with the oldest rebalance closes.
MAX_EPISODES = 4
# An episode is over once nothing of it came for twice its longest gap, and for so long at least.
LEAST_SILENCE_MS = 600_000


class Deed:
    """What a client did in a rebalance, as bits of a number; each is evidence by itself.

    They are plain numbers because each rebalance compares many of them, and those of ``enum`` take ten times as long.
    """

    JOINED: Final = 1
    DEPARTED: Final = 2
    LEFT: Final = 4  # it departed by its own request
    POLLED_TOO_LATE: Final = 8  # it left because its application did not poll
    GHOST: Final = 16  # it departed while its successor was a member already
    SUBSCRIBED: Final = 32  # it subscribes to topics of this rebalance that are new
    SHARED: Final = 64  # several processes at once have this name, so that it identifies none
    BESIDE: Final = 128  # it joined while a former member of it was present


class RootClient(msgspec.Struct, array_like=True, frozen=True, omit_defaults=True):
    """A client among the causes of a rebalance.

    Attributes:
        mark, prefix: CRC-32 of its name and of its name's prefix; of the member's id if it only subscribed.
        ghost_ms: For how long its former member stayed beside it. ghost_queues: How many queues that one held.
    """

    mark: int
    prefix: int
    deeds: int
    ghost_ms: int = 0
    ghost_queues: int = 0


class Root(msgspec.Struct, array_like=True, omit_defaults=True):
    """One remembered rebalance, by its causes.

    Attributes:
        kind: Its main cause, as a place in ``TRIGGER_ORDER``. follows: It is a later generation of the one before.
        topics: Topics that it newly has, or that grew. episode: The number of its episode; 0 if it has none.
        is_planned: That episode is a deploy or a scaling.
    """

    at: int
    rebalance_id: bytes
    kind: int
    clients: list[RootClient] = msgspec.field(default_factory=list)
    moved: int = 0
    pause_ms: int | None = None
    queue_pause_ms: int | None = None
    repeated: int | None = None
    episode: int = 0
    is_planned: bool = False
    topics: list[str] = msgspec.field(default_factory=list)
    follows: bool = False


class Culprit(msgspec.Struct, array_like=True, frozen=True):
    """What causes an episode, as far as it is one thing; ``mark``: of the client, or of the prefix."""

    mark: int = 0
    client: str | None = None
    host: str | None = None
    instance_id: str | None = None
    prefix: str | None = None
    topic: str | None = None


class Episode(msgspec.Struct, kw_only=True, array_like=True):
    """An open episode.

    Attributes:
        number: The group's number of its episodes, from 1. began_at, last_at: Times of its first and newest rebalance.
        gap_ms: The longest time between two of its rebalances.
        earlier_ids: Its rebalances that were decided before they were known to belong to it, at most ``MAX_ROOTS``.
        pause_ms, queue_pause_ms, repeated: Sums, as far as rebalances have them; None if none has.
        period_ms: The mean time between beats; None if it is not periodic. period_of: What has that period.
        clients: How many clients did something in its remembered rebalances, and returns: how often the culprit came
            back. late_polls: How many departures were poll timeouts.
        ghost_ms: For how long, at most, a former member stayed beside its successor. ghost_queues: How many queues it
            held. ghosts: How many former members are still present. has_joined: The clients of a scaling joined.
    """

    number: int
    episode_id: str
    kind: EpisodeKind
    began_at: int
    last_at: int
    culprit: Culprit = Culprit()
    gap_ms: int = 0
    earlier_ids: list[bytes] = msgspec.field(default_factory=list)
    rebalances: int = 0
    moved: int = 0
    pause_ms: int | None = None
    queue_pause_ms: int | None = None
    repeated: int | None = None
    period_ms: int | None = None
    period_of: list[str] = msgspec.field(default_factory=list)
    clients: int = 0
    returns: int = 0
    late_polls: int = 0
    ghost_ms: int | None = None
    ghost_queues: int | None = None
    ghosts: int = 0
    has_joined: bool = False

    @property
    def closes_at(self) -> int:
        """Return when it is over, if no other rebalance of it comes."""
        return self.last_at + max(LEAST_SILENCE_MS, 2 * self.gap_ms)

    @property
    def is_planned(self) -> bool:
        """Return whether a healthy fleet has such episodes."""
        return self.kind in ("rolling_deploy", "scaling")
