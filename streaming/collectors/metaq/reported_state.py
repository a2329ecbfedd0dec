"""Shell: the reported state of a MetaQ cluster, which is its collector's memory. No I/O here."""

from __future__ import annotations

import msgspec

from streaming.collectors.metaq.departures import GivenBack
from streaming.collectors.metaq.observed import ZkGroup, ZkTopic


class ReportedGroupState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One group.

    Attributes:
        observed: The last reported read.
        at: The time of the newest event of the group.
        strategy: The reported strategy.
        given_back: Partitions that lost their owner and have none yet.
        observations: The current observations: kind and detail. missed_at: When changes were missed.
        settled: The state was unchanged for a while, and everything that requires this has been reported.
    """

    observed: ZkGroup = msgspec.field(name="seen")
    at: int
    strategy: str | None = None
    given_back: tuple[GivenBack, ...] = ()
    observations: tuple[tuple[str, str], ...] = ()
    missed_at: int | None = None
    settled: bool = False


class ReportedTopicState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One topic.

    Attributes:
        observed: The last read. queues: As reported; None if never reported.
        at: The time of the last event. doubted_since: Since when fewer queues are observed than were reported.
    """

    observed: ZkTopic = msgspec.field(name="seen")
    queues: tuple[tuple[str, int], ...] | None = None
    at: int = 0
    doubted_since: int | None = None


class ReportedState(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The reported state of everything."""

    groups: dict[str, ReportedGroupState] = msgspec.field(default_factory=dict)
    topics: dict[str, ReportedTopicState] = msgspec.field(default_factory=dict)
