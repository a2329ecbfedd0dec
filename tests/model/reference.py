"""The model of all clusters: batches of events in, tables out. It sorts and replays everything, as simply as it can."""

from __future__ import annotations

from collections.abc import Sequence

from tests.model.conditions import RECORDING, Conditions
from tests.model.late_events import take_late, take_late_of_reported
from tests.model.member import is_bare
from tests.model.reported import ReportedGroup
from tests.model.rows import Tables
from tests.model.times import LATENESS_MS, Event
from tests.model.topics import Topics

_ORDER = (
    "topic_queues", "group_settings", "group_deleted", "group_snapshot", "member_left", "member_joined", "heartbeat",
    "progress", "assignment_reported", "clock",
)  # fmt: skip


def model_tables(batches: Sequence[Sequence[Event]], how: Conditions = RECORDING) -> Tables:
    """Return the expected tables; after the last batch the clock is flushed."""
    tables = Tables()
    clusters: dict[str, Cluster] = {}
    for batch in batches:
        for name in sorted({event["cluster"] for event in batch}):
            cluster = clusters.setdefault(name, Cluster(name, tables, how.settle_ms))
            cluster.batch([event for event in batch if event["cluster"] == name])
    for cluster in clusters.values():
        cluster.flush()
        for group in cluster.groups.values():
            group.finish()
        tables.topics += cluster.topics.rows(cluster.name)
    tables.rebalances.sort(key=lambda row: (row["cluster"], row["group_id"]))
    for rows in (tables.spans, tables.members, tables.findings, tables.groups, tables.topics):
        rows.sort(key=repr)
    return tables


class Cluster:
    """One cluster: its clock, its waiting events, its topics and groups."""

    def __init__(self, name: str, tables: Tables, settle_ms: int) -> None:
        self.name, self.tables, self.settle_ms = name, tables, settle_ms
        self.clock: int | None = None
        self.newest = 0
        self.waiting: list[Event] = []
        self.topics = Topics()
        self.groups: dict[str, ReportedGroup] = {}

    def batch(self, events: list[Event]) -> None:
        # A clock that is ahead of all others does not move the cluster's clock.
        self.newest = max([self.newest, *(event["event_time"] for event in events if not event.get("is_ahead"))])
        self.waiting += events
        self.advance(max(self.newest - LATENESS_MS, self.clock or 0))

    def flush(self) -> None:
        self.advance(max([self.newest, *(event["event_time"] for event in self.waiting)]) + 1)

    def advance(self, clock: int) -> None:
        """Apply all events before the clock, one time after another."""
        before, self.clock = self.clock, clock
        self.topics.floor = 0 if before is None else before - 1
        due = [event for event in self.waiting if event["event_time"] < clock]
        self.waiting = [event for event in self.waiting if event["event_time"] >= clock]
        for event in due:
            name = event.get("group")
            if name is not None and name not in self.groups:
                self.groups[name] = ReportedGroup(self.name, name, event["system"], self.topics, self.tables)
                self.groups[name].settle_ms = self.settle_ms
        due = due if before is None else self.without_late(before, due)
        late = {name: group.late[0] for name, group in self.groups.items() if group.late is not None}
        # Late events apply before anything else.
        timed = [(max(event["event_time"], late.get(event.get("group", ""), 0)), event) for event in due]
        while True:
            times = [group.late[0] for group in self.groups.values() if group.late and group.late[0] < clock]
            times += [when for when, _ in timed]
            times += [at for group in self.groups.values() for at in group.wakes() if at < clock]
            if not times:
                break
            now = min(times)
            events = sorted((event for when, event in timed if when == now), key=_place)
            timed = [(when, event) for when, event in timed if when != now]
            topics = self.topics.at(now)
            for event in events:
                if event["type"] == "topic_queues":
                    self.topics.take(event)
            after = self.topics.at(now)
            grown = {topic for topic in after if after[topic] != topics.get(topic, [])}
            for name in sorted(self.groups):
                mine = [event for event in events if event.get("group") == name]
                group = self.groups[name]
                if mine or grown or (group.late and now == group.late[0]) or now in group.wakes():
                    group.event_time(now, mine, grown)
        for group in self.groups.values():
            if group.reported_generation is not None:
                group.note_expiries(clock)

    def without_late(self, before: int, due: list[Event]) -> list[Event]:
        """Apply events that are older than their group, and return the rest."""
        rest = []
        for event in due:
            group = self.groups.get(event.get("group", ""))
            # An expiry comes after all events of its time.
            applied = None if group is None else group.last_applied
            applied = None if applied is None else applied + (group.expired_at == applied)
            if applied is None or event["event_time"] >= min(before, applied):
                rest.append(event)
            elif group.is_repeat(event, before):
                continue
            elif event["event_time"] < group.deleted_at:
                self.tables.late[f"{group.cluster}/{group.name}"] += event["type"] != "heartbeat"
            else:
                others = [
                    due_event for due_event in due if due_event.get("group") == group.name and due_event is not event
                ]
                if group.reported_generation is None and event.get("generation") is None:
                    take_late(group, before, event, others)
                else:
                    take_late_of_reported(group, before, event)
        return rest


def _place(event: Event) -> tuple[int, bool, int, str]:
    kind = event["type"]
    generation = event.get("generation") or 0 if kind == "group_snapshot" else 0  # of snapshots alone
    return _ORDER.index(kind), is_bare(event), generation, event.get("event_id") or ""
