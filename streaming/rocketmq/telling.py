"""Shell: what a round over a RocketMQ cluster tells beside what was known: the events, and what is known then. Pure.

No event says that a member lives: the brokers' lists decide. Where there is no evidence nothing is told, and what was
known stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from streaming.rocketmq.groups import Context, tell_group
from streaming.rocketmq.known import Known, KnownBroker, KnownGroup, Passing, PassingGroup
from streaming.rocketmq.model import MessageRequestMode
from streaming.rocketmq.options import RocketMqOptions
from streaming.rocketmq.seen import SeenBroker, SeenGroup, Survey
from streaming.rocketmq.topics import tell_topics
from udfs.events import ORDER_AT_ONE_MOMENT, SCHEMA_VERSION, AnyEvent, Clock, GroupDeleted

_SYSTEM: Final = "rocketmq"
# A group is gone when so many rounds in turn no broker had settings or members of it.
_ABSENT_ROUNDS: Final = 2
_NOTHING: Final = KnownGroup()
_NOTHING_PASSING: Final = PassingGroup()


class Told(msgspec.Struct, frozen=True):
    """What a round tells.

    Attributes:
        events: In the order of their times, the clock last; empty where nothing was seen.
        known, passing: As it is when they are told.
    """

    events: list[AnyEvent]
    known: Known
    passing: Passing


def tell(known: Known, passing: Passing, survey: Survey, options: RocketMqOptions) -> Told:
    """Compare a round with what is known. Nothing that is given is changed."""
    brokers = _brokers(known, survey, options)
    if not survey.is_evidence:
        return Told([], msgspec.structs.replace(known, brokers=brokers), passing)
    context = _context(known, brokers, survey, options)
    events: list[AnyEvent] = []
    topic_events, topics = tell_topics(
        known.topics, survey, gone_brokers(brokers, survey.ended_ms, options), options.cluster
    )
    events += topic_events
    context = msgspec.structs.replace(context, topics=topics, topics_changed=topics != known.topics)
    groups: dict[str, KnownGroup] = {}
    passing_groups: dict[str, PassingGroup] = {}
    for name in sorted(survey.groups):
        told, group, passing_group = _tell_group(name, known, passing, survey.groups[name], context, survey)
        events += told
        if group != _NOTHING:
            groups[name] = group
        if passing_group != _NOTHING_PASSING:
            passing_groups[name] = passing_group
    events.sort(key=lambda event: (event.event_time, ORDER_AT_ONE_MOMENT[type(event)]))
    events.append(
        Clock(schema_version=SCHEMA_VERSION, event_time=survey.ended_ms, system=_SYSTEM, cluster=options.cluster)
    )
    after = Known(clock_ms=survey.ended_ms, brokers=brokers, topics=topics, groups=groups)
    return Told(events, after, Passing(passing_groups))


def is_news(before: Known, after: Known) -> bool:
    """Answer whether anything but the time is known that was not."""
    return (
        before.groups != after.groups
        or before.topics != after.topics
        or before.brokers != after.brokers
        or before.clock_ms == 0
    )


# ---- brokers


def gone_brokers(brokers: Mapping[str, KnownBroker], now_ms: int, options: RocketMqOptions) -> frozenset[str]:
    """Answer the brokers that have been away for longer than consumers take to read routes anew."""
    return frozenset(
        name
        for name, broker in brokers.items()
        if broker.away_since_ms is not None and now_ms - broker.away_since_ms >= options.route_grace_ms
    )


def _brokers(known: Known, survey: Survey, options: RocketMqOptions) -> dict[str, KnownBroker]:
    brokers = {}
    for name, seen in survey.brokers.items():
        before = known.brokers.get(name)
        if seen.problem is None:
            brokers[name] = _answering(before, seen, survey.ended_ms, options, is_first=not known.brokers)
            continue
        away_since_ms = before.away_since_ms if before is not None else None
        away_since_ms = survey.ended_ms if away_since_ms is None else away_since_ms
        is_forgotten = not seen.is_listed and survey.ended_ms - away_since_ms >= options.forget_broker_ms
        if not is_forgotten:
            broker = before or KnownBroker(addresses=dict(seen.addresses))
            brokers[name] = msgspec.structs.replace(broker, addresses=dict(seen.addresses), away_since_ms=away_since_ms)
    return brokers


def _answering(
    before: KnownBroker | None, seen: SeenBroker, now_ms: int, options: RocketMqOptions, *, is_first: bool
) -> KnownBroker:
    """Answer a broker that answers. One that was started anew, or is new, has not heard its members yet."""
    if before is None:
        lists_all_at_ms = 0 if is_first else now_ms + options.boot_grace_ms
        return KnownBroker(addresses=dict(seen.addresses), boot_ms=seen.boot_ms, lists_all_at_ms=lists_all_at_ms)
    is_restarted = seen.boot_ms is not None and before.boot_ms is not None and seen.boot_ms != before.boot_ms
    return KnownBroker(
        addresses=dict(seen.addresses),
        boot_ms=before.boot_ms if seen.boot_ms is None else seen.boot_ms,
        lists_all_at_ms=now_ms + options.boot_grace_ms if is_restarted else before.lists_all_at_ms,
    )


def _context(known: Known, brokers: Mapping[str, KnownBroker], survey: Survey, options: RocketMqOptions) -> Context:
    boots = {
        name: brokers[name].boot_ms or 0
        for name, seen in survey.brokers.items()
        if seen.is_evidence and name in brokers
    }
    settled = {name for name in boots if brokers[name].lists_all_at_ms <= survey.ended_ms}
    modes: dict[str, list[MessageRequestMode]] = {}
    for name in sorted(survey.brokers):
        for mode in survey.brokers[name].modes:
            modes.setdefault(mode.consumer_group, []).append(mode)
    return Context(
        options=options,
        brokers=frozenset(brokers),
        boots=boots,
        settled=frozenset(settled),
        restarted=frozenset(name for name in settled if known.clock_ms < brokers[name].lists_all_at_ms),
        topics={},
        topics_changed=True,
        unseen_topics=frozenset(survey.unseen_topics),
        modes=modes,
        floor_ms=known.clock_ms,
        began_ms=survey.began_ms,
        now_ms=survey.ended_ms,
        is_complete=survey.is_complete,
    )


# ---- groups


def _tell_group(
    name: str, known: Known, passing: Passing, seen: SeenGroup, context: Context, survey: Survey
) -> tuple[list[AnyEvent], KnownGroup, PassingGroup]:
    """Tell a group's news, or its end."""
    events, group, passing_group = tell_group(
        name, known.groups.get(name, _NOTHING), passing.groups.get(name, _NOTHING_PASSING), seen, context
    )
    absent = passing_group.absent + 1 if _is_absent(name, group, context, survey) else 0
    if absent != passing_group.absent:
        passing_group = msgspec.structs.replace(passing_group, absent=absent)
    if absent < _ABSENT_ROUNDS:
        return events, group, passing_group
    if group.told is not None:
        event = GroupDeleted(
            schema_version=SCHEMA_VERSION,
            event_time=survey.ended_ms,
            system=_SYSTEM,
            cluster=context.options.cluster,
            group=name,
        )
        events = [*events, event]
    return events, _NOTHING, _NOTHING_PASSING


def _is_absent(name: str, group: KnownGroup, context: Context, survey: Survey) -> bool:
    """Answer whether every broker says that there is no such group. Its settings outlive its members."""
    if group.members:
        return False
    return all(
        broker in context.settled and seen.groups is not None and name not in seen.groups
        for broker, seen in survey.brokers.items()
    )
