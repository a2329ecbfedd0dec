"""A reader as simple as possible: all events at once, sorted, one millisecond after another, whole groups in dicts.

It knows nothing of lateness, batches, queues or strategies: only the members and what was reported.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from udfs.model.events import ORDER_AT_ONE_TIME, AnyEvent

TIMEOUTS_MS = {"kafka": 45_000, "rocketmq": 120_000, "metaq": 30_000}
# (cluster, group, time) -> causes, each (kind, member, topic)
Found = dict[tuple[str, str, int], set[tuple[str, str | None, str | None]]]


class PlainGroup:
    """One group whose generations are counted."""

    def __init__(self) -> None:
        self.has_rows = False
        self.last: dict[str, int] = {}  # members that live by heartbeats
        self.polled: set[str] = set()  # members known from snapshots
        self.about: dict[str, dict[str, object]] = {}  # everything ever reported of a member
        self.settings: dict[str, object] = {}
        self.hosts: dict[str, str] = {}

    @property
    def members(self) -> set[str]:
        return self.polled | set(self.last)

    def named(self, member: str, host: str | None) -> str:
        """Return the name of a connection: another host with the id of a living member is its second."""
        if host is not None and member in self.last and self.hosts.get(member, host) != host:
            member += "#2"
        if host is not None:
            self.hosts[member] = host
        return member

    def deadline(self, member: str, system: str) -> int:
        timeout = self.about[member].get("session_timeout_ms") or TIMEOUTS_MS[system]
        return self.last[member] + int(str(timeout))


def read(events: Iterable[AnyEvent]) -> Found:
    """Return every rebalance of counted groups, with its causes."""
    found: Found = defaultdict(set)
    groups: dict[tuple[str, str], PlainGroup] = defaultdict(PlainGroup)
    systems: dict[str, str] = {}
    topics: dict[tuple[str, str], object] = {}
    times: dict[int, list[AnyEvent]] = defaultdict(list)
    newest: dict[str, int] = {}
    observed = set()
    for event in events:
        if repr(event) not in observed:
            observed.add(repr(event))
            times[event.event_time].append(event)
            systems[event.cluster] = event.system
            newest[event.cluster] = max(event.event_time, newest.get(event.cluster, 0))
    reported = sorted(times)
    deadlines: set[int] = set()
    while reported or deadlines:
        now = min([*reported[:1], *deadlines])
        deadlines.discard(now)
        if reported and reported[0] == now:
            reported.pop(0)
        for event in sorted(times.get(now, ()), key=lambda event: ORDER_AT_ONE_TIME[type(event)]):
            _apply(event, groups, topics, found)
        for (cluster, name), group in groups.items():
            for member in sorted(group.last):
                deadline = group.deadline(member, systems[cluster])
                if deadline == now and now <= newest[cluster]:
                    del group.last[member]
                    _note(found, group, (cluster, name, now), "session_expired", member)
                elif deadline > now:
                    deadlines.add(deadline)
    return found


def _note(
    found: Found,
    group: PlainGroup,
    place: tuple[str, str, int],
    kind: str,
    member: str | None,
    topic: str | None = None,
) -> None:
    if not group.has_rows:
        group.has_rows = True
        found[place].add(("group_created", None, None))
    found[place].add((kind, member, topic))


def _apply(
    event: AnyEvent, groups: dict[tuple[str, str], PlainGroup], topics: dict[tuple[str, str], object], found: Found
) -> None:
    kind = type(event).__name__
    if kind == "TopicQueues":
        queues = event.queues or event.queue_count
        if topics.get((event.cluster, event.topic)) != queues:
            topics[event.cluster, event.topic] = queues
            for (cluster, name), group in groups.items():
                subscribed = any(
                    event.topic in (group.about[member_id].get("subscriptions") or ()) for member_id in group.members
                )
                if cluster == event.cluster and subscribed:
                    place = (cluster, name, event.event_time)
                    _note(found, group, place, "queue_count_changed", None, event.topic)
    if not hasattr(event, "group") or (kind == "GroupSnapshot" and event.generation is not None):
        return
    group = groups[event.cluster, event.group]
    place = (event.cluster, event.group, event.event_time)
    if kind == "GroupSettings":
        reported = {"strategy": event.strategy, "settings": (event.mode, event.strategy_settings)}
        for what, value in reported.items():
            if group.settings.get(what) != value and group.members:
                _note(found, group, place, f"{what}_changed", None)
        group.settings = reported
    elif kind == "GroupDeleted":
        groups[event.cluster, event.group] = PlainGroup()
    elif kind == "MemberLeft":
        if event.member_id in group.last:
            del group.last[event.member_id]
            _note(found, group, place, "member_left", event.member_id)
    elif kind in ("MemberJoined", "Heartbeat"):
        member_id = group.named(event.member_id, event.host)
        _describe(found, group, place, member_id, event)
        if member_id not in group.last:
            _note(found, group, place, "member_joined", member_id)
        group.last[member_id] = event.event_time
    elif kind == "GroupSnapshot":
        there = {member.member_id for member in event.members}
        how = {departure.member_id: departure.kind for departure in event.departures or ()}
        for member_id in group.polled - there:
            group.polled.discard(member_id)
            kinds = {"left": "member_left", "expired": "session_expired"}
            _note(found, group, place, kinds.get(how.get(member_id), "member_gone"), member_id)
        for member in event.members:
            _describe(found, group, place, member.member_id, member)
            if member.member_id not in group.polled:
                group.polled.add(member.member_id)
                _note(found, group, place, "member_joined", member.member_id)


def _describe(found: Found, group: PlainGroup, place: tuple[str, str, int], member_id: str, reported: object) -> None:
    about = group.about.setdefault(member_id, {})
    for field, kind in (
        ("subscriptions", "subscription_changed"),
        ("strategies", "strategy_changed"),
        ("session_timeout_ms", None),
    ):
        value = getattr(reported, field)
        if value is not None:
            if kind and member_id in group.members and about.get(field, ()) != value:
                _note(found, group, place, kind, member_id)
            about[field] = value
