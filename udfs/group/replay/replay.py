"""Core: a group's history, decided again by the coordinator that decides live. No I/O.

There is no second engine: every event goes to ``coordinator.advance``, event time by event time. Only what surrounds a
group differs. A history knows when each session ended, so members do not expire by silence in between; and when a group
was forgotten, so it is not forgotten for commits that no table has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

import msgspec

from udfs.group import coordinator
from udfs.group.replay.known_topics import KnownTopics
from udfs.model.config import CoreConfig
from udfs.model.events import TopicQueues
from udfs.model.group_api import DueEvent, GroupInput
from udfs.model.journal import Change, Rebalance
from udfs.model.member_fields import MAX_SPAN_MS
from udfs.model.systems import System

# Never: longer than any history.
_NEVER_MS: Final = MAX_SPAN_MS // 4


class History(msgspec.Struct, frozen=True, kw_only=True):
    """What happened to a group, as events of the contract.

    Attributes:
        events: In the order of their times; the changes of its topics are among them.
    """

    cluster: str
    group_id: str
    system: System
    events: tuple[DueEvent, ...]


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """What the coordinator decided over a history: rows and changes in the order of decision."""

    rebalances: list[Rebalance]
    changes: list[Change]


class _NoRepeats:
    """A history has each event once."""

    def is_repeat(self, event_id: str, time_ms: int) -> bool:  # noqa: ARG002
        return False


def replay(history: History, config: CoreConfig) -> Replayed:
    """Return what the coordinator decides over a history, under these settings."""
    config = msgspec.structs.replace(config, forget_after_ms=_NEVER_MS)
    topics = KnownTopics(due.event for due in history.events if isinstance(due.event, TopicQueues))
    group = coordinator.new_group(history.cluster, history.system, history.group_id)
    rebalances: list[Rebalance] = []
    changes: list[Change] = []
    clock: int | None = None
    alive: Sequence[str] = ()
    for time_ms, due_events in _by_time(history.events, config.settle_ms):
        facts = GroupInput(
            cluster=history.cluster,
            system=history.system,
            group_id=history.group_id,
            clock_before=clock,
            clock=time_ms + 1,
            detected_at=time_ms,
            events=due_events,
            # Everyone whose session goes on is alive.
            last_heartbeat=dict.fromkeys(alive, time_ms),
        )
        output = coordinator.advance(group, facts, topics, _NoRepeats(), config)
        rebalances += output.rebalances
        changes += output.changes
        alive, clock = list(output.last_heartbeat), time_ms + 1
    return Replayed(rebalances=rebalances, changes=changes)


def _by_time(events: Sequence[DueEvent], settle_ms: int) -> Iterator[tuple[int, list[DueEvent]]]:
    """Yield the events of each time, and at the end none, when the last changes have settled."""
    for time_ms, of_time in groupby(events, lambda due: due.event.event_time):
        yield time_ms, list(of_time)
    if events:
        yield events[-1].event.event_time + settle_ms + 1, []
