"""Shell: the reported and the observed state of a group -> events. No I/O here.

Changes with a time in ZooKeeper (a join, a new owner) are reported with that time. A removal is reported with the time
at which it was noticed, or that of a later transaction that has one. Changes within one read are reported one by one,
in the order of their times.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from streaming.collectors.metaq.departures import STOPPING_MS, GivenBack, departure_of
from streaming.collectors.metaq.observed import ZkGroup, ZkMember, ZkOwner, changes_between
from streaming.collectors.metaq.read_context import ReadContext
from streaming.collectors.metaq.reported_state import ReportedGroupState, ReportedTopicState
from streaming.collectors.metaq.znodes import client_of_member, read_partition
from udfs.model.events import (
    ORDER_AT_ONE_TIME,
    AnyEvent,
    AssignmentReported,
    Departure,
    GroupDeleted,
    GroupSettings,
    GroupSnapshot,
    HeldQueue,
    MemberInfo,
    Observation,
    QueueInfo,
    QueueRef,
    event_fields,
)
from udfs.model.first_few import first_few
from udfs.strategies.inference import infer_strategy

# Missed changes are reported as an observation for this long.
MISSED_OPEN_MS: Final = 60_000
_RECREATED = 2**31  # no folder changes this often between two reads, so it was recreated
_NAMED_AT_MOST = 3

Held = Mapping[tuple[str, str], ZkOwner]


def diff_group(
    group: str,
    before: ReportedGroupState | None,
    observed: ZkGroup,
    topics: Mapping[str, ReportedTopicState],
    context: ReadContext,
) -> tuple[list[AnyEvent], ReportedGroupState]:
    """Report the changes of a group.

    Args:
        topics: The reported topics, from which the strategy is inferred.
    """
    _learn_times(observed, context)
    if before is None:
        return _first_report(group, observed, topics, context)
    return _Changes(group, before, observed, context).diff()


def report_settled(
    group: str, reported: ReportedGroupState, topics: Mapping[str, ReportedTopicState], context: ReadContext
) -> tuple[list[AnyEvent], ReportedGroupState]:
    """Report what requires an unchanged state: the strategy, and the assignment of every member."""
    changed = [topics[topic].at for topic in _subscribed(reported.observed) if topic in topics]
    at = max([reported.at, *changed]) + 1
    strategy = _strategy_of(reported.observed, topics)
    events: list[AnyEvent] = []
    if strategy is not None and strategy != reported.strategy:
        events.append(_settings(group, strategy, context, at))
    events += [_report(group, member, held, context, at) for member, held in reported.observed.held().items()]
    return events, msgspec.structs.replace(
        reported, at=at if events else reported.at, strategy=strategy or reported.strategy, settled=True
    )


def close_missed(
    group: str, reported: ReportedGroupState, context: ReadContext
) -> tuple[list[AnyEvent], ReportedGroupState]:
    """Report the end of missed changes, once none was missed for long enough."""
    if reported.missed_at is None or context.at - reported.missed_at < MISSED_OPEN_MS:
        return [], reported
    observations = tuple(observation for observation in reported.observations if observation[0] != "changes_missed")
    at = max(context.at, reported.at + 1)
    event = _snapshot(group, reported.observed.members, context, at, observations)
    return [event], msgspec.structs.replace(reported, observations=observations, missed_at=None, at=at)


def diff_deleted(group: str, reported: ReportedGroupState, context: ReadContext) -> list[AnyEvent]:
    """Report that a group's nodes were deleted."""
    at = max(context.at, reported.at + 1)
    return [GroupDeleted(**event_fields("metaq", context.cluster, at), group=group)]


def _first_report(
    group: str, observed: ZkGroup, topics: Mapping[str, ReportedTopicState], context: ReadContext
) -> tuple[list[AnyEvent], ReportedGroupState]:
    newest = max((owner.since for _, _, owner in observed.owned()), default=0)
    is_settled = (
        max([newest, *(member.joined_at for member in observed.members.values())]) <= context.at - context.settle_ms
    )
    strategy = _strategy_of(observed, topics) if is_settled else None
    observations = _violations_of(observed)
    events: list[AnyEvent] = [] if strategy is None else [_settings(group, strategy, context, context.at)]
    events.append(_snapshot(group, observed.members, context, context.at, observations))
    for member, held in observed.held().items():
        if held or is_settled:
            events.append(_report(group, member, held, context, context.at))
    return events, ReportedGroupState(
        observed=observed,
        at=context.at,
        strategy=strategy,
        observations=observations,
        settled=is_settled or not observed.members,
    )


class _Changes:
    """The changes between two reads of one group."""

    def __init__(self, group: str, before: ReportedGroupState, observed: ZkGroup, context: ReadContext) -> None:
        self.group, self.context = group, context
        self.reported, self.before, self.observed = before, before.observed, observed
        was, now = self.before.members, observed.members
        self.departed = sorted(was.keys() - now.keys())
        self.new = sorted(now.keys() - was.keys())
        self.rejoined = sorted(name for name in was.keys() & now.keys() if was[name].czxid != now[name].czxid)
        self.was_held, self.now_held = before.observed.held(), observed.held()
        self.changes = changes_between(self.before.ids, observed.ids)
        self.events: list[AnyEvent] = []

    def diff(self) -> tuple[list[AnyEvent], ReportedGroupState]:
        missed = self._missed()
        missed_at = self.context.at if missed else self.reported.missed_at
        current = [observation for observation in self.reported.observations if observation[0] == "changes_missed"]
        observations = tuple([("changes_missed", missed)] if missed else current) + _violations_of(self.observed)
        self._diff_members(observations)
        self._diff_owners()
        last = self._put_in_order()
        nothing_new = not self.events and self.before.topics.keys() == self.observed.topics.keys()
        return self.events, msgspec.structs.replace(
            self.reported,
            observed=self.observed,
            at=last,
            given_back=self._given_back(),
            observations=observations,
            missed_at=missed_at,
            settled=self.reported.settled and nothing_new,
        )

    def _put_in_order(self) -> int:
        """Give each event its own time, later than all events reported before; return the last time.

        The order of two snapshots, or of two reports of one member, with the same timestamp would be undefined.
        """
        self.events.sort(key=lambda event: (event.event_time, ORDER_AT_ONE_TIME[type(event)]))
        last = self.reported.at
        at_last: set[tuple[type[AnyEvent], str | None]] | None = None
        for event in self.events:
            what = (type(event), getattr(event, "member_id", None))
            if event.event_time > last:
                at_last = set()
            elif event.event_time < last or at_last is None or what in at_last:
                event.event_time, at_last = last + 1, set()
            last = event.event_time
            at_last.add(what)
        return last

    # ---- members

    def _diff_members(self, observations: tuple[tuple[str, str], ...]) -> None:
        """Write a snapshot for each time at which a member joined or departed."""
        by_time: dict[int, tuple[list[str], list[str]]] = {}
        for name in self.departed:
            at = self.context.removed_at(self.observed.ids.pzxid, alone=self.changes == 1)
            by_time.setdefault(at, ([], []))[0].append(name)
        for name in self.rejoined:
            # It departed and rejoined between two reads; the departure was some time before.
            by_time.setdefault(self.observed.members[name].joined_at - 1, ([], []))[0].append(name)
        for name in (*self.new, *self.rejoined):
            by_time.setdefault(self.observed.members[name].joined_at, ([], []))[1].append(name)
        described = {
            name: self.observed.members.get(name, member) if name not in self.rejoined else member
            for name, member in self.before.members.items()
        }
        given_back = {(partition.topic, partition.partition): partition for partition in self.reported.given_back}
        last = max(by_time, default=None)
        for at in sorted(by_time):
            departed, joined = by_time[at]
            departures = tuple(
                departure_of(
                    name, self.was_held[name], given_back, self.observed, changes=self.changes, at=self.context.at
                )
                for name in departed
                if name in self.departed
            )
            for name in departed:
                del described[name]
            described |= {name: self.observed.members[name] for name in joined}
            reported = observations if at == last else self.reported.observations
            self.events.append(_snapshot(self.group, described, self.context, at, reported, departures))
        resubscribed = any(
            self.before.members[name].subscriptions != member.subscriptions
            for name, member in self.observed.members.items()
            if name in self.before.members and name not in self.rejoined
        )
        if not by_time and (resubscribed or observations != self.reported.observations):
            self.events.append(
                _snapshot(self.group, self.observed.members, self.context, self.context.noticed, observations)
            )

    def _missed(self) -> str | None:
        """Return, as text, how many changes between the two reads were not observed."""
        parts = []
        unseen = self.changes - len(self.departed) - len(self.new) - 2 * len(self.rejoined)
        if 0 < unseen < _RECREATED:
            parts.append(f"{_changes(unseen)} of the group's consumers")
        if not self.context.continuous:
            # While watches are set, partitions may change owners several times within one read without a miss.
            for topic, now in sorted(self.observed.topics.items()):
                was = self.before.topics.get(topic)
                if was is None:
                    continue
                shown = sum(
                    (was.owners.get(name) is not None) + (now.owners.get(name) is not None)
                    for name in was.owners.keys() | now.owners.keys()
                    if was.owners.get(name) != now.owners.get(name)
                )
                unseen = changes_between(was.folder, now.folder) - shown
                if 0 < unseen < _RECREATED:
                    parts.append(f"{_changes(unseen)} of the owners of {topic}")
        return None if not parts else f"{', '.join(parts)} happened between two reads (cversion)"

    # ---- owners

    def _diff_owners(self) -> None:
        for name in sorted(self.observed.members):
            stayed = name not in self.new and name not in self.rejoined
            was = self.was_held[name] if stayed else {}
            now = self.now_held[name]
            kept = {key: owner for key, owner in was.items() if now.get(key) == owner}
            lost = [key for key in was if key not in kept]
            taken = [owner.since for key, owner in now.items() if key not in kept]
            if lost:
                at = max(self._lost_at(*key) for key in lost)
                self.events.append(_report(self.group, name, kept, self.context, at))
            if taken:
                self.events.append(_report(self.group, name, now, self.context, max(taken)))

    def _lost_at(self, topic: str, partition: str) -> int:
        """Return the time by which a partition had certainly lost its owner."""
        owners = self.observed.topics.get(topic)
        if owners is None:
            return self.context.at
        taken = owners.owners.get(partition)
        # Partitions are released one by one, so the watch fired for the first of them, milliseconds before the last.
        at = self.context.removed_at(owners.folder.pzxid, alone=self.context.continuous)
        return at if taken is None else min(at, taken.since)

    def _given_back(self) -> tuple[GivenBack, ...]:
        owned = {(topic, name) for topic, held in self.observed.topics.items() for name in held.owners}
        kept = [
            partition
            for partition in self.reported.given_back
            if (partition.topic, partition.partition) not in owned
            and partition.member_id in self.observed.members
            and self.context.at - partition.at <= STOPPING_MS
        ]
        lost = [
            GivenBack(owner.member_id, topic, name, self.observed.topics[topic].folder.pzxid, self.context.at)
            for topic, name, owner in self.before.owned()
            if (topic, name) not in owned and topic in self.observed.topics and owner.member_id in self.observed.members
        ]
        return (*kept, *lost)


# ---- events


def _snapshot(
    group: str,
    members: Mapping[str, ZkMember],
    context: ReadContext,
    at: int,
    observations: tuple[tuple[str, str], ...],
    departures: tuple[Departure, ...] = (),
) -> GroupSnapshot:
    return GroupSnapshot(
        **event_fields("metaq", context.cluster, at),
        group=group,
        members=tuple(_member(group, name, members[name]) for name in sorted(members)),
        departures=departures or None,
        observations=tuple(Observation(kind=kind, detail=detail) for kind, detail in observations),
    )


def _member(group: str, name: str, member: ZkMember) -> MemberInfo:
    client, host = client_of_member(group, name)
    return MemberInfo(member_id=name, client_id=client, host=host, subscriptions=member.subscriptions)


def _report(group: str, member: str, held: Held, context: ReadContext, event_time: int) -> AssignmentReported:
    queues = []
    for (topic, name), owner in held.items():
        broker, number = read_partition(name)
        queues.append(HeldQueue(topic=topic, queue_id=number, broker=broker, held_since=owner.since))
    return AssignmentReported(
        **event_fields("metaq", context.cluster, event_time),
        group=group,
        member_id=member,
        queues=tuple(sorted(queues, key=lambda queue: (queue.topic, queue.broker or "", queue.queue_id))),
    )


def _settings(group: str, strategy: str, context: ReadContext, event_time: int) -> GroupSettings:
    return GroupSettings(
        **event_fields("metaq", context.cluster, event_time),
        group=group,
        strategy=strategy,
        inferred=True,
    )


# ---- the content of one read


def _strategy_of(observed: ZkGroup, topics: Mapping[str, ReportedTopicState]) -> str | None:
    subscriptions = {name: member.subscriptions for name, member in observed.members.items()}
    queues = {
        topic: [QueueInfo(queue_id=number, broker=broker) for broker, number in topics[topic].queues or ()]
        for topic in _subscribed(observed)
        if topic in topics
    }
    owners = {}
    for topic, name, owner in observed.owned():
        broker, number = read_partition(name)
        owners[QueueRef(topic=topic, queue_id=number, broker=broker)] = owner.member_id
    return infer_strategy(subscriptions, queues, owners)


def _subscribed(observed: ZkGroup) -> set[str]:
    return {topic for member in observed.members.values() for topic in member.subscriptions}


def _violations_of(observed: ZkGroup) -> tuple[tuple[str, str], ...]:
    if not observed.violations:
        return ()
    nodes = [f"{node.path} ({node.reason})" for node in observed.violations]
    return (("unreadable_nodes", first_few(nodes, _NAMED_AT_MOST)),)


def _learn_times(observed: ZkGroup, context: ReadContext) -> None:
    for member in observed.members.values():
        context.times.learn(member.czxid, member.joined_at)
    for owners in observed.topics.values():
        for owner in owners.owners.values():
            context.times.learn(owner.czxid, owner.since)


def _changes(number: int) -> str:
    return f"{number} change" if number == 1 else f"{number} changes"
