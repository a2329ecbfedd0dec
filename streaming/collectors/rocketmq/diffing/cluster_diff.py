"""Shell: compares one round over a RocketMQ cluster with the remembered state: the events and the new state. Pure.

No event reports that a member is alive: the brokers' lists decide. Without evidence nothing is reported, and the
remembered state stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from streaming.collectors.rocketmq.diffing.group_diff import Context, diff_group
from streaming.collectors.rocketmq.diffing.remembered import (
    RememberedBroker,
    RememberedGroup,
    RememberedProxy,
    RememberedState,
    VolatileGroup,
    VolatileState,
)
from streaming.collectors.rocketmq.diffing.start_diff import diff_starts
from streaming.collectors.rocketmq.diffing.topic_diff import diff_topics
from streaming.collectors.rocketmq.options import RocketMqOptions
from streaming.collectors.rocketmq.polling.survey import ObservedBroker, ObservedGroup, Survey
from streaming.collectors.rocketmq.remoting.messages import MessageRequestMode
from udfs.model.events import ORDER_AT_ONE_TIME, AnyEvent, Clock, GroupDeleted, event_fields

_SYSTEM: Final = "rocketmq"
# A group is deleted after this many rounds in a row in which no broker had its settings or members.
_ABSENT_ROUNDS: Final = 2
_NOTHING: Final = RememberedGroup()
_NOTHING_VOLATILE: Final = VolatileGroup()


class ClusterDiff(msgspec.Struct, frozen=True):
    """The result of a round.

    Attributes:
        events: In the order of their times, the clock last; empty if no broker answered.
        state, volatile: The state once the events are reported.
    """

    events: list[AnyEvent]
    state: RememberedState
    volatile: VolatileState


def diff_cluster(
    state: RememberedState, volatile: VolatileState, survey: Survey, options: RocketMqOptions
) -> ClusterDiff:
    """Compare a round with the remembered state; the arguments are not changed."""
    brokers, proxies = _brokers(state, survey, options), _proxies(state, survey, options)
    if not survey.is_evidence:
        return ClusterDiff([], msgspec.structs.replace(state, brokers=brokers, proxies=proxies), volatile)
    context = _context(state, brokers, proxies, survey, options)
    events: list[AnyEvent] = []
    topic_events, topics = diff_topics(
        state.topics, survey, missing_brokers(brokers, survey.ended_ms, options), options.cluster
    )
    events += topic_events
    context = msgspec.structs.replace(context, topics=topics, topics_changed=topics != state.topics)
    groups: dict[str, RememberedGroup] = {}
    volatile_groups: dict[str, VolatileGroup] = {}
    for name in sorted(survey.groups):
        group_events, group, volatile_group = _diff_group(name, state, volatile, survey.groups[name], context, survey)
        events += group_events
        if group != _NOTHING:
            groups[name] = group
        if volatile_group != _NOTHING_VOLATILE:
            volatile_groups[name] = volatile_group
    volatile = msgspec.structs.replace(volatile, groups=volatile_groups)
    start_events, volatile = diff_starts(volatile, survey, state.clock_ms, options.cluster)
    events += start_events
    events.sort(key=lambda event: (event.event_time, ORDER_AT_ONE_TIME[type(event)]))
    events.append(Clock(**event_fields(_SYSTEM, options.cluster, survey.ended_ms)))
    after = RememberedState(clock_ms=survey.ended_ms, brokers=brokers, proxies=proxies, topics=topics, groups=groups)
    return ClusterDiff(events, after, volatile)


def is_news(before: RememberedState, after: RememberedState) -> bool:
    """Return whether more of the remembered state changed than its time."""
    return (
        before.groups != after.groups
        or before.topics != after.topics
        or before.brokers != after.brokers
        or before.proxies != after.proxies
        or before.clock_ms == 0
    )


# ---- brokers


def missing_brokers(brokers: Mapping[str, RememberedBroker], now_ms: int, options: RocketMqOptions) -> frozenset[str]:
    """Return the brokers that were unavailable for longer than consumers take to refresh routes."""
    return frozenset(
        name
        for name, broker in brokers.items()
        if broker.away_since_ms is not None and now_ms - broker.away_since_ms >= options.route_grace_ms
    )


def _brokers(state: RememberedState, survey: Survey, options: RocketMqOptions) -> dict[str, RememberedBroker]:
    brokers = {}
    for name, observed in survey.brokers.items():
        before = state.brokers.get(name)
        if observed.problem is None:
            brokers[name] = _answering(before, observed, survey.ended_ms, options, is_first=not state.brokers)
            continue
        away_since_ms = before.away_since_ms if before is not None else None
        away_since_ms = survey.ended_ms if away_since_ms is None else away_since_ms
        is_forgotten = not observed.is_listed and survey.ended_ms - away_since_ms >= options.forget_broker_ms
        if not is_forgotten:
            broker = before or RememberedBroker(addresses=dict(observed.addresses))
            brokers[name] = msgspec.structs.replace(
                broker, addresses=dict(observed.addresses), away_since_ms=away_since_ms
            )
    return brokers


def _answering(
    before: RememberedBroker | None, observed: ObservedBroker, now_ms: int, options: RocketMqOptions, *, is_first: bool
) -> RememberedBroker:
    """Return a broker that answers. A restarted or new broker has not yet received its members' heartbeats."""
    if before is None:
        lists_all_at_ms = 0 if is_first else now_ms + options.boot_grace_ms
        return RememberedBroker(
            addresses=dict(observed.addresses), boot_ms=observed.boot_ms, lists_all_at_ms=lists_all_at_ms
        )
    is_restarted = observed.boot_ms is not None and before.boot_ms is not None and observed.boot_ms != before.boot_ms
    return RememberedBroker(
        addresses=dict(observed.addresses),
        boot_ms=before.boot_ms if observed.boot_ms is None else observed.boot_ms,
        lists_all_at_ms=now_ms + options.boot_grace_ms if is_restarted else before.lists_all_at_ms,
    )


def _proxies(state: RememberedState, survey: Survey, options: RocketMqOptions) -> dict[str, RememberedProxy]:
    """Return the proxies of the settings; one that answers again has not received its clients' heartbeats yet."""
    proxies = {}
    for address in options.proxy_addresses:
        before, observed = state.proxies.get(address, RememberedProxy()), survey.proxies.get(address)
        if observed is None:
            proxies[address] = before
        elif observed.problem is not None:
            since_ms = survey.ended_ms if before.away_since_ms is None else before.away_since_ms
            proxies[address] = msgspec.structs.replace(before, away_since_ms=since_ms)
        elif before.away_since_ms is not None:
            proxies[address] = RememberedProxy(lists_all_at_ms=survey.ended_ms + options.boot_grace_ms)
        else:
            proxies[address] = before
    return proxies


def _context(
    state: RememberedState,
    brokers: Mapping[str, RememberedBroker],
    proxies: Mapping[str, RememberedProxy],
    survey: Survey,
    options: RocketMqOptions,
) -> Context:
    boots = {
        name: brokers[name].boot_ms or 0
        for name, observed in survey.brokers.items()
        if observed.is_evidence and name in brokers
    }
    lists_all_at_ms = {name: brokers[name].lists_all_at_ms for name in boots}
    for address, proxy in proxies.items():
        if proxy.away_since_ms is None and address in survey.proxies:
            boots[address] = lists_all_at_ms[address] = proxy.lists_all_at_ms
    settled = {name for name, time_ms in lists_all_at_ms.items() if time_ms <= survey.ended_ms}
    modes: dict[str, list[MessageRequestMode]] = {}
    for name in sorted(survey.brokers):
        for mode in survey.brokers[name].modes:
            modes.setdefault(mode.consumer_group, []).append(mode)
    return Context(
        options=options,
        brokers=frozenset(brokers.keys() | proxies.keys()),
        proxies=frozenset(proxies),
        boots=boots,
        settled=frozenset(settled),
        restarted=frozenset(name for name in settled if state.clock_ms < lists_all_at_ms[name]),
        topics={},
        topics_changed=True,
        unseen_topics=frozenset(survey.unseen_topics),
        modes=modes,
        floor_ms=state.clock_ms,
        began_ms=survey.began_ms,
        now_ms=survey.ended_ms,
        is_complete=survey.is_complete,
    )


# ---- groups


def _diff_group(
    name: str,
    state: RememberedState,
    volatile: VolatileState,
    observed: ObservedGroup,
    context: Context,
    survey: Survey,
) -> tuple[list[AnyEvent], RememberedGroup, VolatileGroup]:
    """Report a group's changes, or its end."""
    events, group, volatile_group = diff_group(
        name, state.groups.get(name, _NOTHING), volatile.groups.get(name, _NOTHING_VOLATILE), observed, context
    )
    absent = volatile_group.absent + 1 if _is_absent(name, group, context, survey) else 0
    if absent != volatile_group.absent:
        volatile_group = msgspec.structs.replace(volatile_group, absent=absent)
    if absent < _ABSENT_ROUNDS:
        return events, group, volatile_group
    if group.snapshot_hash is not None:
        event = GroupDeleted(
            **event_fields(_SYSTEM, context.options.cluster, survey.ended_ms),
            group=name,
        )
        events = [*events, event]
    return events, _NOTHING, _NOTHING_VOLATILE


def _is_absent(name: str, group: RememberedGroup, context: Context, survey: Survey) -> bool:
    """Return whether every broker reports that there is no such group; its settings outlive its members."""
    if group.members:
        return False
    return all(
        broker in context.settled and observed.groups is not None and name not in observed.groups
        for broker, observed in survey.brokers.items()
    )
