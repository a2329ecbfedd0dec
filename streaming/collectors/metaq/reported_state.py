"""Shell: the reported state of a MetaQ cluster, which its collector remembers. No I/O here."""

from __future__ import annotations

import msgspec

from streaming.collectors.metaq.departures import GivenBack
from streaming.collectors.metaq.observed import ZkGroup, ZkTopic


class ReportedGroupState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One group.

    Attributes:
        observed: The last reported read.
        at: The time of the newest event of the group.
        strategy: The reported one.
        given_back: What lost its owner and has none yet.
        observations: The current ones: kind and detail. missed_at: When changes were missed.
        settled: The state was unchanged for a while, and what needs this has been reported.
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
        observed: The last read. queues: As reported; None when never reported.
        at: The time of the last event. doubted_since: Since when fewer are observed than were reported.
    """

    observed: ZkTopic = msgspec.field(name="seen")
    queues: tuple[tuple[str, int], ...] | None = None
    at: int = 0
    doubted_since: int | None = None


class ReportedState(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Everything."""

    groups: dict[str, ReportedGroupState] = msgspec.field(default_factory=dict)
    topics: dict[str, ReportedTopicState] = msgspec.field(default_factory=dict)
