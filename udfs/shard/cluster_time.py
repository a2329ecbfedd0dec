"""Core: a cluster's own time: the newest event time that the rest of the cluster supports. No I/O.

A single producer's clock does not decide for others. A time counts when

- two different producers have sent events at it or later, or there is only one producer in the cluster;
  producers that are ahead of their batch count only while all are;
- a collector's ``clock`` event has it;
- it is further behind the batch than ``max_clock_skew``: a recording is accepted unchanged;
- it comes from the only active producer, but no sooner after its batch than the cluster's times came before: the
  cluster's time advances while any producer is active.

Newer events wait. All shards of a cluster get the same input and compute the same time.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from udfs.model.config import CoreConfig
from udfs.packets.packet import COLLECTOR, Packet, Spoken, two_newest

# The delay between events and their batch varies a little.
_LAG_VARIES_BY_MS = 10_000
# Times ahead of the batch count only after this long without a producer whose times are not ahead.
_ALL_AHEAD_AFTER_MS = 10_000
# A single clock this far ahead may be supported by others far behind it, for as long as a source may lag.
_AHEAD_ALONE_MS = 60_000
_SOURCE_LAGS_BY_MS = 300_000


class ClusterTime(msgspec.Struct, kw_only=True):
    """The event times from a cluster's producers, as far as the cluster's time depends on them.

    Attributes:
        spoken: The two newest times by different producers, newest first, of times that were not ahead of their batch.
        ahead: The same for times that were ahead.
        clock: The newest time of a collector. recorded: The newest time that was accepted as a recording.
        shared: The newest time that other producers supported. lag: How far behind its batch that was.
        alone: The newest time of a producer that was the only active one and not ahead.
        supported: The cluster's time after the last batch.
        since, in_time_at: Timestamps of the first batch, and of the last batch with a time that was not ahead of it.
    """

    spoken: list[Spoken] = msgspec.field(default_factory=list)
    ahead: list[Spoken] = msgspec.field(default_factory=list)
    clock: int | None = None
    recorded: int | None = None
    shared: int | None = None
    lag: int | None = None
    alone: int | None = None
    supported: int | None = None
    since: int | None = None
    in_time_at: int | None = None

    def advance(
        self, packets: Sequence[Packet], newest: int, batch_ms: int, config: CoreConfig
    ) -> tuple[int, int | None]:
        """Apply a batch; return the supported time, and its lead over the batch if it advanced.

        Args:
            newest: The newest of all event times, supported or not.
        """
        self.since = batch_ms if self.since is None else self.since
        spoken = [speaker for packet in packets for speaker in packet.speakers]
        ahead = [speaker for packet in packets for speaker in packet.ahead]
        self.spoken = two_newest([*self.spoken, *spoken])
        self.ahead = two_newest([*self.ahead, *ahead])
        if spoken:
            self.in_time_at = batch_ms
        self.clock = _latest(self.clock, *(time for time, producer in [*spoken, *ahead] if producer == COLLECTOR))
        as_it_is = batch_ms - config.max_clock_skew_ms
        times = [packet.recorded_ms for packet in packets] + [packet.newest_ms for packet in packets]
        times += [time for time, _ in [*self.spoken, *self.ahead]]
        self.recorded = _latest(self.recorded, *(time for time in times if time is not None and time <= as_it_is))
        shared = _latest(self.clock, self._shared(newest, batch_ms))
        news = shared if shared is not None and (self.shared is None or shared > self.shared) else None
        if news is not None:
            self.shared, self.lag = news, batch_ms - news
        self.supported = _latest(shared, self.recorded, self._alone(spoken, batch_ms))
        if self.supported is None:
            self.supported = min(newest, as_it_is)
        return self.supported, None if news is None else news - batch_ms

    def _shared(self, newest: int, batch_ms: int) -> int | None:
        """Return the newest time that two producers support, or that of the only producer."""
        spoken = self.spoken
        if self.in_time_at is None or batch_ms - self.in_time_at > _ALL_AHEAD_AFTER_MS:
            spoken = two_newest([*spoken, *self.ahead])
        if len(spoken) == 2:
            return spoken[1][0]
        only = spoken[0][0] if spoken else newest
        settled = batch_ms - (self.since or 0) > _SOURCE_LAGS_BY_MS
        return only if settled or only <= batch_ms + _AHEAD_ALONE_MS else None

    def _alone(self, spoken: Sequence[Spoken], batch_ms: int) -> int | None:
        """Return how far a producer advances the cluster's time while the others are silent."""
        if self.lag is None:
            return None
        in_time = batch_ms - self.lag
        self.alone = _latest(self.alone, *(time for time, _ in spoken if time <= in_time + _LAG_VARIES_BY_MS))
        return None if self.alone is None else min(self.alone, in_time)


def _latest(*times: int | None) -> int | None:
    return max((time for time in times if time is not None), default=None)
