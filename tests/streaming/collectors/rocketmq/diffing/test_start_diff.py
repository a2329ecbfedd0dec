"""Where queues begin: reported when it moves, and no sooner than the commits before it were read again."""

from __future__ import annotations

from collections.abc import Mapping

from streaming.collectors.rocketmq.diffing.remembered import VolatileGroup, VolatileState
from streaming.collectors.rocketmq.diffing.start_diff import diff_starts
from streaming.collectors.rocketmq.polling.survey import ObservedBounds, ObservedGroup, Survey
from streaming.collectors.rocketmq.remoting.messages import LogBounds
from tests.streaming.collectors.rocketmq.surveys import START_MS, offsets

Bounds = tuple[int, int]


class _Rounds:
    """One round after another; groups are ``g`` and ``h``."""

    def __init__(self) -> None:
        self.volatile, self.now_ms = VolatileState(), START_MS

    def take(self, bounds: Bounds | None = None, **read: int | Bounds) -> list[tuple[int, int | None, int]]:
        """Return start, end and time within the round of what is reported of the queue t-0 on broker a.

        Args:
            read: By group: its offset, or offset and end.
        """
        self.now_ms += 5_000
        survey = Survey(began_ms=self.now_ms - 100, ended_ms=self.now_ms)
        groups: Mapping[str, VolatileGroup] = self.volatile.groups
        for name in {*groups, *read}:
            survey.groups[name] = ObservedGroup()
        for name, offset in read.items():
            survey.groups[name].offsets = offsets(q0=offset)
            survey.groups[name].offset_brokers = frozenset({"a"})
            groups = {**groups, name: VolatileGroup(offsets=offsets(q0=offset))}
        if bounds is not None:
            (queue,) = offsets(q0=0)
            survey.bounds["t"] = ObservedBounds(at_ms=self.now_ms - 10, bounds={queue: LogBounds(*bounds)})
        events, self.volatile = diff_starts(
            VolatileState(groups, self.volatile.starts, self.volatile.held_starts), survey, self.now_ms - 4_000, "c"
        )
        return [
            (queue.start_offset or 0, queue.end_offset, event.event_time - self.now_ms)
            for event in events
            for queue in event.queues
            if (event.topic, queue.broker, queue.queue_id) == ("t", "a", 0)
        ]


def test_a_start_is_reported_when_it_moves() -> None:
    rounds = _Rounds()
    assert rounds.take((0, 10)) == [(0, 10, -10)]
    assert rounds.take((0, 20)) == []
    assert rounds.take() == []
    assert rounds.take((5, 20), g=8) == [(5, 20, -10)]
    # A smaller one is that of a topic that was made again.
    assert rounds.take((0, 3)) == [(0, 3, -10)]


def test_a_start_beyond_a_commit_waits_until_the_offsets_of_each_such_group_were_read_again() -> None:
    rounds = _Rounds()
    rounds.take((0, 100), g=10, h=20)
    assert rounds.take((50, 200)) == []
    assert rounds.take((60, 250), g=(10, 210)) == []
    assert rounds.take(g=(10, 220)) == []
    # The end may have moved meanwhile, and is not reported to be smaller than it is.
    assert rounds.take(h=(70, 230)) == [(50, 230, 0)]
    assert rounds.take((60, 250), h=70) == []
    assert rounds.take(g=(60, 260)) == [(60, 260, 0)]


def test_a_group_that_is_gone_is_not_waited_for() -> None:
    rounds = _Rounds()
    rounds.take((0, 100), g=10)
    assert rounds.take((50, 200)) == []
    rounds.volatile = VolatileState({}, rounds.volatile.starts, rounds.volatile.held_starts)
    assert rounds.take() == [(50, 200, 0)]
