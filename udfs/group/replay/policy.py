"""Core: a history as it would have been under a policy: another strategy, other queues, other members. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from udfs.group.replay.member_policies import Lived, MemberPolicy, lived
from udfs.group.replay.replay import History, Replayed, replay
from udfs.group.replay.stays import stays_of, with_stays
from udfs.model.config import CoreConfig
from udfs.model.events import GroupDeleted, GroupSettings, GroupSnapshot, TopicQueues, event_fields
from udfs.model.group_api import DueEvent
from udfs.model.queues import queues_of, with_count
from udfs.model.systems import SYSTEMS

_SET: Final = "strategy of a policy"


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that would have been otherwise, from the beginning of a history on.

    Attributes:
        strategy: The qualified name of the strategy that is set for the group. queues: The number of queues that topics
            have whenever they exist; where queues belong to brokers, on each broker. without: Ids of members that are
            never there. members: What its members would have done otherwise.
    """

    strategy: str | None = None
    queues: Mapping[str, int] = msgspec.field(default_factory=dict)
    without: frozenset[str] = frozenset()
    members: MemberPolicy = MemberPolicy()


class DecidedUnderPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What the coordinator decides under a policy; ``lived`` is None where members do what they did."""

    replayed: Replayed
    lived: Lived | None = None


def decided(policy: Policy, history: History, recorded: Replayed, config: CoreConfig) -> DecidedUnderPolicy:
    """Return what the coordinator decides over a history under a policy.

    Args:
        recorded: What it decides over the history as it was.
    """
    if policy.members == MemberPolicy():
        return DecidedUnderPolicy(replayed=replay(under(policy, history), config))
    changed, done = _lived(policy, history, recorded, config)
    delay_ms = policy.members.join_delay_ms
    if delay_ms is not None and SYSTEMS[history.system].has_rebalance_loop:
        # Clients that learn of changes in their loop alone take in at once what has changed since.
        config = msgspec.structs.replace(config, settle_ms=delay_ms)
    return DecidedUnderPolicy(replayed=replay(under(policy, changed), config), lived=done)


def _lived(policy: Policy, history: History, recorded: Replayed, config: CoreConfig) -> tuple[History, Lived]:
    """Return the history with what its members would have done."""
    if not history.events:
        return history, Lived(stays=[])
    stays = stays_of(history, recorded.changes)
    staying = [stay for stay in stays if stay.member_id not in policy.without]
    default_ms, end_ms = config.session_timeouts_ms[history.system], history.events[-1].event.event_time
    done = lived(policy.members, staying, history.system, default_ms, end_ms)
    return with_stays(history, done.stays), done


def under(policy: Policy, history: History) -> History:
    """Return a history as it would have been under a policy; without a change it is the same."""
    events = [changed for due in history.events for changed in _changed(policy, history, due)]
    if policy.strategy is not None and events:
        # A deletion takes what is set with it.
        times = [due.event.event_time + 1 for due in events if isinstance(due.event, GroupDeleted)]
        for time_ms in [events[0].event.event_time, *times]:
            fields = event_fields(history.system, history.cluster, time_ms)
            event = GroupSettings(**fields, group=history.group_id, strategy=policy.strategy)
            events.insert(0, DueEvent(event, f"{_SET}, {time_ms}"))
        events.sort(key=lambda due: due.event.event_time)
    return msgspec.structs.replace(history, events=tuple(events))


def _changed(policy: Policy, history: History, due: DueEvent) -> Iterator[DueEvent]:
    event: Any = due.event
    if getattr(event, "member_id", None) in policy.without:
        return
    if isinstance(event, TopicQueues) and event.topic in policy.queues:
        if found := queues_of(event):
            per_broker = SYSTEMS[history.system].counts_queues_per_broker
            queues = with_count(found, policy.queues[event.topic], per_broker=per_broker)
            event = msgspec.structs.replace(event, queues=queues, queue_count=None)
    elif isinstance(event, GroupSettings) and policy.strategy is not None:
        # What is set for one strategy says nothing of another.
        event = msgspec.structs.replace(event, strategy=None, strategy_settings=None, inferred=False)
        if event.mode is None:
            return
    elif isinstance(event, GroupSnapshot):
        event = _without(policy, event)
    yield DueEvent(event, due.event_id)


def _without(policy: Policy, event: GroupSnapshot) -> GroupSnapshot:
    held = event.assignments
    return msgspec.structs.replace(
        event,
        strategy=policy.strategy or event.strategy,
        members=tuple(member for member in event.members if member.member_id not in policy.without),
        departures=event.departures
        and tuple(departure for departure in event.departures if departure.member_id not in policy.without),
        assignments=held and {member: queues for member, queues in held.items() if member not in policy.without},
    )
