"""Shell: what was told of a MetaQ cluster, which is also what its collector remembers. No I/O here."""

from __future__ import annotations

import msgspec

from streaming.metaq.departures import GivenBack
from streaming.metaq.seen import SeenGroup, SeenTopic


class ToldGroup(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One group.

    Attributes:
        seen: The look that was told last.
        at: The time of the newest event of the group.
        strategy: What was told of it.
        given_back: What lost its owner and has none yet.
        observations: Those that stand: kind and detail. missed_at: When changes were missed.
        settled: The look has stood for a while, and all was told that can be told only then.
    """

    seen: SeenGroup
    at: int
    strategy: str | None = None
    given_back: tuple[GivenBack, ...] = ()
    observations: tuple[tuple[str, str], ...] = ()
    missed_at: int | None = None
    settled: bool = False


class ToldTopic(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One topic.

    Attributes:
        seen: The last look. queues: As they were told; None when nothing was.
        at: The time of the last event. doubted_since: Since when fewer are seen than were told.
    """

    seen: SeenTopic
    queues: tuple[tuple[str, int], ...] | None = None
    at: int = 0
    doubted_since: int | None = None


class Told(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Everything."""

    groups: dict[str, ToldGroup] = msgspec.field(default_factory=dict)
    topics: dict[str, ToldTopic] = msgspec.field(default_factory=dict)
