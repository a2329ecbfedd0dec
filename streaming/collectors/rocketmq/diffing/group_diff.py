"""Shell: the changes of one RocketMQ group between two rounds, as events. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

import msgspec

from streaming.collectors.rocketmq.diffing.anomalies import lists_differ, observe, tables_differ, watch_tables
from streaming.collectors.rocketmq.diffing.member_diff import (
    by_table,
    connected,
    departure,
    described,
    followed,
    watched,
)
from streaming.collectors.rocketmq.diffing.offset_diff import compare_offsets, progress
from streaming.collectors.rocketmq.diffing.position_diff import compare_positions
from streaming.collectors.rocketmq.diffing.remembered import (
    GroupEvidence,
    RememberedGroup,
    RememberedMember,
    VolatileGroup,
)
from streaming.collectors.rocketmq.diffing.reported_assignments import diff_assignments
from streaming.collectors.rocketmq.options import RETRY_PREFIX, RocketMqOptions
from streaming.collectors.rocketmq.polling.survey import ObservedGroup, RememberedTopic
from streaming.collectors.rocketmq.remoting.messages import ConsumerConnections, MessageRequestMode
from udfs.model.events import (
    AnyEvent,
    GroupSettings,
    GroupSnapshot,
    MemberInfo,
    Mode,
    event_fields,
)

_SYSTEM: Final = "rocketmq"
_BROADCASTING: Final = "BROADCASTING"
_POP: Final = "POP"
_CONSUME_POP: Final = "CONSUME_POP"
# A new group is reported after its members were queried and its topics read, but no later than this: reported without
# them, it would seem to change its strategies and queues. A remembered group waits for two rounds.
_FIRST_WAIT_MS: Final = 60_000
_WAIT_ROUNDS: Final = 2
# All members send heartbeats within 30 s, so a table that was unchanged for longer is valid for all of them.
_TABLE_RESTS_MS: Final = 35_000


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is the same for all groups of a poll.

    Attributes:
        brokers, boots, settled, proxies: Of all groups; see ``GroupEvidence``. restarted: Brokers and proxies that just
            became settled.
        topics: The reported topics. topics_changed: Those changed in this round. unseen_topics: Those not read yet.
        modes: By group, as configured on the brokers.
        floor_ms: Every event must be later than this. began_ms, now_ms: The round's beginning and end.
    """

    options: RocketMqOptions
    brokers: frozenset[str]
    proxies: frozenset[str]
    boots: Mapping[str, int]
    settled: frozenset[str]
    restarted: frozenset[str]
    topics: Mapping[str, RememberedTopic]
    topics_changed: bool
    unseen_topics: frozenset[str]
    modes: Mapping[str, list[MessageRequestMode]]
    floor_ms: int
    began_ms: int
    now_ms: int
    is_complete: bool = False


def diff_group(
    name: str, group: RememberedGroup, volatile: VolatileGroup, observed: ObservedGroup, context: Context
) -> tuple[list[AnyEvent], RememberedGroup, VolatileGroup]:
    """Compare a group in a round with its remembered state.

    Returns: The events, and the remembered state once they are reported.
    """
    if not observed.lists and not group.members and group.snapshot_hash is None:
        return [], group, volatile
    # It is not reported before its offsets were read, because they include the last commit of a departed member.
    at_ms = max(context.floor_ms + 1, observed.at_ms or context.now_ms, observed.offsets_at_ms)
    lists = {**observed.lists, **observed.proxy_lists}
    evidence = GroupEvidence(
        lists=lists,
        boots={name: boot_ms for name, boot_ms in context.boots.items() if name in lists},
        settled=context.settled & lists.keys(),
        brokers=context.brokers,
        proxies=context.proxies,
    )
    is_same = evidence == volatile.evidence
    before = group
    group = _described(group if is_same else _evaluated(group, observed, evidence, at_ms, context), observed, context)
    group = _changed(group, tables=watch_tables(group, lists, at_ms, is_same=is_same))
    group = _watched(group, observed, context)
    group = _by_table(group, observed, at_ms, context)
    new_offsets, compared = compare_offsets(volatile, observed, context.options, is_alone=not group.members)
    new_positions, compared = compare_positions(compared, observed, context.options)
    counted = _counted(group, compared, observed, evidence, context, is_same=is_same)
    if group is not before or counted is not volatile or not is_same or context.topics_changed:
        group = _with_observations(group, counted, evidence, context)
    volatile = counted if is_same else msgspec.structs.replace(counted, evidence=evidence)
    events: list[AnyEvent] = []
    mode = _mode(name, group, observed, context)
    is_news = group is not before or group.waiting_since_ms is not None or mode != (group.mode, group.settings or {})
    if is_news:
        emitted, group = _emit_snapshot(name, group, mode, at_ms, context)
        events += emitted
    may_report = group.snapshot_hash is not None and group.waiting_since_ms is None
    emitted, group = diff_assignments(name, group, observed, at_ms, context.options, may_report=may_report)
    events += emitted
    cluster = context.options.cluster
    if new_offsets:
        events.append(progress(name, new_offsets, max(context.floor_ms + 1, observed.offsets_at_ms), cluster))
    if new_positions:
        # This time is later than the group's; by then, changed members have taken these queues over.
        answered_ms = max(member.at_ms for member in observed.members.values())
        emitted_ms = min(max(at_ms + 1, answered_ms), max(at_ms, context.now_ms))
        events.append(progress(name, new_positions, emitted_ms, cluster))
    return events, group, volatile


# ---- members


def _evaluated(
    group: RememberedGroup, observed: ObservedGroup, evidence: GroupEvidence, at_ms: int, context: Context
) -> RememberedGroup:
    """Return a group with the members that it has according to the brokers' lists."""
    members, departed = connected(group.members, evidence)
    if group.snapshot_hash is not None:
        familiar = {member.client_id for member in group.members}
        members = tuple(
            member if member.client_id in familiar else msgspec.structs.replace(member, is_newcomer=True)
            for member in members
        )
    present = {member.client_id for member in members}
    departures = [departed_member for departed_member in group.departures if departed_member.member_id not in present]
    if group.snapshot_hash is not None:
        # Their last reports, or the lack of them, may be from this round.
        last = [_with_report(member, observed, context) for member in departed]
        departures += [departure(member, at_ms, context.restarted, evidence) for member in last]
    return _changed(
        group,
        members=members,
        departures=tuple(departures),
        sub_version=max(group.sub_version, observed.sub_version()),
        topic_modes=group.topic_modes if members else {},
    )


def _described(group: RememberedGroup, observed: ObservedGroup, context: Context) -> RememberedGroup:
    """Return a group with its members' own reports."""
    if not observed.members:
        return group
    members = tuple(_with_report(member, observed, context) for member in group.members)
    return _changed(group, members=members, topic_modes={**group.topic_modes, **observed.topic_modes})


def _with_report(member: RememberedMember, observed: ObservedGroup, context: Context) -> RememberedMember:
    report = observed.members.get(member.client_id)
    return described(member, report, context.options) if report is not None else member


def _watched(group: RememberedGroup, observed: ObservedGroup, context: Context) -> RememberedGroup:
    """Return a group in which silent members that are still connected are marked as stuck."""
    if not any(member.is_silent for member in group.members):
        return group
    listed = observed.client_ids()
    return _changed(group, members=tuple(watched(member, listed, context.began_ms) for member in group.members))


def _changed(group: RememberedGroup, **fields: object) -> RememberedGroup:
    """Return a group with changed fields; the same object if none differs."""
    changed = {name: value for name, value in fields.items() if getattr(group, name) != value}
    return msgspec.structs.replace(group, **changed) if changed else group


def _by_table(group: RememberedGroup, observed: ObservedGroup, at_ms: int, context: Context) -> RememberedGroup:
    """Return a group whose members without their own report have the topics of the group's tables.

    The clients of proxies have those of the proxies' tables. A member's topics are replaced only by an unchanged table,
    because the table is that of the last heartbeat.
    """
    if all(member.is_described for member in group.members):
        return group
    tables = group.tables
    is_at_rest = not tables.flapped_ms and at_ms - tables.changed_ms >= _TABLE_RESTS_MS
    topics, proxied = _table_of(observed.lists), _table_of(observed.proxy_lists)
    # A client that pulls subscribes to the group's retry topic itself; one of gRPC leaves retries to the proxy.
    pops = bool(proxied) and not any(topic.startswith(RETRY_PREFIX) for topic in proxied)

    def with_table(member: RememberedMember) -> RememberedMember:
        is_behind = member.is_behind(context.proxies)
        if is_behind and proxied and member.pops != pops:
            member = msgspec.structs.replace(member, pops=pops)
        if is_at_rest or member.info.subscriptions is None:
            return by_table(member, followed(proxied if is_behind else topics, context.options))
        return member

    return _changed(group, members=tuple(with_table(member) for member in group.members))


def _table_of(lists: Mapping[str, ConsumerConnections | None]) -> set[str]:
    return {topic for listed in lists.values() if listed is not None for topic in listed.subscriptions}


# ---- problems


def _counted(
    group: RememberedGroup,
    volatile: VolatileGroup,
    observed: ObservedGroup,
    evidence: GroupEvidence,
    context: Context,
    *,
    is_same: bool,
) -> VolatileGroup:
    """Count for how many rounds in a row each problem has existed."""
    if is_same and not context.topics_changed:
        lists, tables = volatile.differs > 0, volatile.tables_differ > 0
    else:
        settled = evidence.settled - evidence.proxies  # no client computes with the list of a proxy
        lists = lists_differ(evidence.lists, settled, _holders(group, context))
        tables = tables_differ(evidence.lists, settled)
    counts = (
        volatile.unpolled + 1 if observed.unpolled else 0,
        volatile.differs + 1 if lists else 0,
        volatile.tables_differ + 1 if tables else 0,
    )
    if counts == (volatile.unpolled, volatile.differs, volatile.tables_differ):
        return volatile
    return msgspec.structs.replace(volatile, unpolled=counts[0], differs=counts[1], tables_differ=counts[2])


def _topics(group: RememberedGroup) -> set[str]:
    return {topic for member in group.members for topic in member.info.subscriptions or ()}


def _holders(group: RememberedGroup, context: Context) -> set[str]:
    """Return the brokers with queues of topics that the group reads."""
    return {
        broker
        for topic in _topics(group)
        if not topic.startswith(RETRY_PREFIX) and topic in context.topics
        for broker in context.topics[topic].queues
    }


def _with_observations(
    group: RememberedGroup, volatile: VolatileGroup, evidence: GroupEvidence, context: Context
) -> RememberedGroup:
    static = sorted(topic for topic in _topics(group) if topic in context.topics and context.topics[topic].is_static)
    away = sorted(context.proxies - context.boots.keys())
    found = observe(group, volatile, evidence, _holders(group, context), static, away, context.now_ms)
    return _changed(group, observations=found)


# ---- the snapshot


def _emit_snapshot(
    name: str, group: RememberedGroup, mode: tuple[Mode, dict[str, object]], at_ms: int, context: Context
) -> tuple[list[AnyEvent], RememberedGroup]:
    """Report the group as a whole, and its mode, if they differ from the last report."""
    if group.snapshot_hash is None and not group.members and not group.observations:
        return [], group
    waiting_ms = group.waiting_since_ms if group.waiting_since_ms is not None else at_ms
    unqueried = any(
        not member.is_described and not member.failures and not member.is_behind(context.proxies)
        for member in group.members
    )
    unseen = bool(context.unseen_topics) and not context.unseen_topics.isdisjoint(_topics(group))
    options = context.options
    patience_ms = _FIRST_WAIT_MS if group.snapshot_hash is None else _WAIT_ROUNDS * options.poll_interval_ms
    if ((unqueried and not context.is_complete) or unseen) and at_ms - waiting_ms < patience_ms:
        return [], _changed(group, waiting_since_ms=waiting_ms)
    events: list[AnyEvent] = []
    if group.members and mode != (group.mode, group.settings or {}):
        events.append(
            GroupSettings(
                **event_fields(_SYSTEM, options.cluster, at_ms),
                group=name,
                mode=mode[0],
                strategy_settings=mode[1] if mode[1] or group.settings else None,
            )
        )
        group = _changed(group, mode=mode[0], settings=mode[1] or None)
    members = tuple(member.info for member in group.members)
    digest = _digest(members, group)
    if digest != group.snapshot_hash:
        events.append(
            GroupSnapshot(
                **event_fields(_SYSTEM, options.cluster, at_ms),
                group=name,
                members=members,
                departures=group.departures or None,
                observations=group.observations,
            )
        )
    return events, _changed(group, snapshot_hash=digest, departures=(), waiting_since_ms=None)


def _digest(members: tuple[MemberInfo, ...], group: RememberedGroup) -> str:
    return hashlib.sha256(msgspec.json.encode((members, group.observations))).hexdigest()[:16]


def _mode(
    name: str, group: RememberedGroup, observed: ObservedGroup, context: Context
) -> tuple[Mode, dict[str, object]]:
    """Return the group's mode: members' own reports take precedence over the broker's table of the last heartbeat.

    Disagreeing members change nothing.
    """
    if not observed.lists or not group.members:
        return group.mode or "clustering", group.settings or {}
    models = {member.message_model for member in group.members if member.message_model is not None}
    if not models:
        models = {
            listed.message_model
            for listed in (*observed.lists.values(), *observed.proxy_lists.values())
            if listed is not None and listed.message_model is not None
        }
    if len(models) > 1 and group.mode is not None:
        return group.mode, group.settings or {}
    if models == {_BROADCASTING}:
        return "broadcasting", {}
    topics = {topic for topic in _topics(group) if not topic.startswith(RETRY_PREFIX)}
    modes = {mode.topic: mode for mode in context.modes.get(name, ()) if mode.topic in topics}
    leaves_it = any(member.is_client_rebalance is False for member in group.members)
    pops = (
        any(member.pops for member in group.members)
        or any(listed is not None and listed.consume_type == _CONSUME_POP for listed in observed.lists.values())
        or any(mode == _POP for mode in group.topic_modes.values())
        or (leaves_it and any(mode.mode == _POP for mode in modes.values()))
    )
    if not pops:
        return "clustering", {}
    if all(member.is_behind(context.proxies) for member in group.members):
        return "message", {}  # a proxy pops from any queue
    shares = {mode.pop_share_queue_num for mode in modes.values() if mode.mode == _POP}
    return "message", {"share_number": shares.pop()} if len(shares) == 1 else {}
