"""Core: one shard of one cluster through one batch: its clock, what is due, which groups must decide. No I/O.

A group is decoded only when something about it is due: an event of its own, a heartbeat of a member that is not
known or that hides a gap, a deadline, a change of one of its topics, or the time at which it asked to be woken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from udfs.cluster_clock import move_clock
from udfs.cold import find_sorted
from udfs.errors import InvariantError
from udfs.events import (
    AnyEvent,
    AssignmentReported,
    Clock,
    GroupSnapshot,
    Heartbeat,
    MemberJoined,
    Progress,
    System,
    TopicQueues,
)
from udfs.facts import Advanced, Due, GroupFacts, GroupLogic
from udfs.journal import Change, Rebalance, Rejected
from udfs.liveness import Settled, places_of
from udfs.packing import (
    SYSTEMS,
    CarriedEvent,
    Int64,
    PackedHeartbeats,
    Packet,
    UInt64,
    carry_event,
    cluster_key,
    group_keys,
    order_of,
    queue_keys,
    read_event,
    shard_of,
    topic_key,
)
from udfs.rejection import Rejection, rejected
from udfs.restoring import MARK, restore
from udfs.rules import Rules
from udfs.shard_state import Record, ShardState, Stranger, Written, cut_keys
from udfs.watch import topic_hash

Row = Rebalance | Change | Rejected
_CHUNK = 512  # groups decoded at a time: bounds memory, and hashes their members' ids at once


class _Work:
    """What is due for one group in this batch."""

    __slots__ = ("events", "name", "strangers", "system")

    def __init__(self, name: str, system: System) -> None:
        self.name = name
        self.system = system
        self.events: list[tuple[AnyEvent, CarriedEvent]] = []
        self.strangers: list[tuple[str, int]] = []


class _Pairs(NamedTuple):
    """The due heartbeats of the groups that are looked at, by group, member, time."""

    groups: Int64
    members: Int64
    times: Int64
    behind: Sequence[bool]


class Shard:
    """One shard of one cluster, opened for one batch.

    Args:
        data: The state that ``encode`` answered after the batch before; None at first.
    """

    def __init__(self, cluster: str, number: int, data: bytes | None, rules: Rules, logic: GroupLogic) -> None:
        self.cluster = cluster
        self.number = number
        self.state = ShardState(cluster, data, rules)
        self._rules = rules
        self._logic = logic
        self._works: dict[int, _Work] = {}
        self._moves: dict[str, list[tuple[TopicQueues, CarriedEvent]]] = {}
        self._moved_hashes: dict[int, list[str]] = {}
        self._names: dict[tuple[int, int], tuple[Record, str]] = {}
        self._written: dict[int, Written] = {}

    def encode(self) -> bytes:
        """Answer the state after the batch."""
        return self.state.encode()

    def advance(self, packets: Sequence[Packet], batch_ms: int) -> Iterator[Row]:
        """Take in a batch and answer what it decided. The state is complete once the answer has been read to its end.

        Args:
            packets: All packets of the batch for this shard. batch_ms: The batch's own timestamp.
        """
        state = self.state
        arrived = [carried for packet in packets for carried in packet.events]
        if state.header.system is None:
            state.header.system = _system_of(packets)
        if any(MARK in carried.content for carried in arrived):
            arrived, refused = self._restore(arrived, batch_ms)
            yield from refused
        clock = move_clock(state, packets, arrived, batch_ms, self._rules)
        yield from self._advance_silence(packets, clock)
        if clock is None:
            state.events = state.events + arrived
            return
        due = self._due_events(arrived, clock)
        yield from self._advance_topics(due, batch_ms)
        for packet in packets:
            if packet.progress is not None:
                state.commits.take_packed(packet.progress)
        self._assign(due)
        state.commits.settle(clock)
        settled = self._settle_heartbeats(packets, clock)
        yield from self._advance_groups(settled, clock, batch_ms)

    def _restore(self, arrived: list[CarriedEvent], batch_ms: int) -> tuple[list[CarriedEvent], list[Rejected]]:
        others, refused = restore(self.state, arrived, self._is_mine)
        rows = []
        for event, carried, fault in refused:
            if not isinstance(event, TopicQueues) or self._is_home(event.topic):
                group_id = event.group if isinstance(event, GroupSnapshot) else None
                rows.append(self._rejected(carried, Rejection(*fault, self.cluster, group_id), batch_ms))
        return others, rows

    # ---- time

    def _advance_silence(self, packets: Sequence[Packet], clock: int | None) -> list[Change]:
        if not self._is_mine(cluster_key(self.cluster)):
            return []
        seen = [span for packet in packets for span in packet.times_seen]
        marks = [packet.silence_ms for packet in packets if packet.silence_ms is not None]
        return self.state.silence.advance(
            self.cluster, seen, clock, max(marks, default=None), self._rules.source_silent_after_ms
        )

    # ---- what is due

    def _due_events(self, arrived: list[CarriedEvent], clock: int) -> list[tuple[AnyEvent, CarriedEvent]]:
        waiting: list[CarriedEvent] = []
        due: list[tuple[AnyEvent, CarriedEvent]] = []
        for carried in [*self.state.events, *arrived]:
            if carried.event_time < clock:
                due.append((read_event(carried), carried))
            else:
                waiting.append(carried)
        self.state.events = waiting
        return due

    def _advance_topics(self, due: Sequence[tuple[AnyEvent, CarriedEvent]], batch_ms: int) -> list[Row]:
        told = [(event, carried) for event, carried in due if isinstance(event, TopicQueues)]
        if not told:
            return []
        moves, late, changes = self.state.topics.apply(told, self.state.repeats)
        for event, carried in moves:
            if event.topic not in self._moves:
                self._moves[event.topic] = []
                self._moved_hashes.setdefault(topic_hash(event.topic), []).append(event.topic)
            self._moves[event.topic].append((event, carried))
        rows: list[Row] = [change for change in changes if self._is_home(change.subject or "")]
        for event, carried in late:
            self.state.header.late_topics += 1
            if self._is_home(event.topic):
                detail = f"older than what is known of topic {event.topic}: changes nothing"
                rows.append(self._late_row(carried, detail, None, batch_ms))
        return rows

    def _is_mine(self, key: int) -> bool:
        return shard_of(key, self._rules.shards) == self.number

    def _is_home(self, topic: str) -> bool:
        return self._is_mine(topic_key(self.cluster, topic))

    def _assign(self, due: Sequence[tuple[AnyEvent, CarriedEvent]]) -> None:
        """Give each due event to its group."""
        mine = [pair for pair in due if not isinstance(pair[0], TopicQueues | Clock)]
        keys = group_keys(self.cluster, [_group_of(event) for event, _ in mine]).tolist()
        for key, (event, carried) in zip(keys, mine, strict=True):
            if isinstance(event, Progress):
                queues = queue_keys([(queue.topic, queue.broker, queue.queue_id) for queue in event.queues])
                times = np.full(len(queues), event.event_time, dtype=np.int64)
                self.state.commits.take(np.full(len(queues), key, dtype=np.uint64), queues, times)
                continue
            self._work(key, _group_of(event), event.system).events.append((event, carried))

    def _work(self, key: int, name: str, system: System) -> _Work:
        work = self._works.get(key)
        if work is None:
            work = self._works[key] = _Work(name, system)
        return work

    # ---- heartbeats

    def _settle_heartbeats(self, packets: Sequence[Packet], clock: int) -> Settled:
        """Apply heartbeats of known members in the arrays; the others go to their groups, or wait."""
        members = [np.empty(0, dtype=np.int64)]
        times = [np.empty(0, dtype=np.int64)]
        places = self.state.live.places()
        strangers = self.state.strangers
        self.state.strangers = []
        if strangers:
            keys = group_keys(self.cluster, [one.group for one in strangers])
            rows = self._rows(places, self.state.find(keys), cut_keys([one.member_id for one in strangers]))
            members.append(rows[rows >= 0])
            times.append(np.asarray([one.time for one in strangers], dtype=np.int64)[rows >= 0])
            for key, row, one in zip(keys.tolist(), rows.tolist(), strangers, strict=True):
                if row < 0:
                    self._meet_stranger(key, one, clock)
        for packet in packets:
            if packet.heartbeats is not None:
                known, at = self._known_pairs(places, packet.heartbeats, clock)
                members.append(known)
                times.append(at)
        return self.state.live.settle(np.concatenate(members), np.concatenate(times), self.state.clock_before, clock)

    @staticmethod
    def _rows(places: UInt64, groups: Int64, keys: UInt64) -> Int64:
        rows = find_sorted(places, places_of(groups, keys))
        return np.asarray(np.where(groups >= 0, rows, -1))

    def _known_pairs(self, places: UInt64, packed: PackedHeartbeats, clock: int) -> tuple[Int64, Int64]:
        keys = np.frombuffer(packed.group_keys, "<u8").astype(np.uint64, copy=False)
        owners = np.frombuffer(packed.member_groups, "<u4")
        member_keys = np.frombuffer(packed.member_keys, "<u8").astype(np.uint64, copy=False)
        pair_members = np.frombuffer(packed.pair_members, "<u4")
        times = np.frombuffer(packed.pair_times, "<i8").astype(np.int64, copy=False)
        rows = self._rows(places, self.state.find(keys)[owners], member_keys)[pair_members]
        known = rows >= 0
        if known.all():
            return rows, times
        names, ids = packed.group_names.unpack(), packed.member_names.unpack()
        for pair in np.flatnonzero(~known).tolist():
            member = int(pair_members[pair])
            group = int(owners[member])
            system: System = SYSTEMS[packed.systems[group]]  # type: ignore[assignment]
            stranger = Stranger(system, names[group], ids[member], int(times[pair]))
            self._meet_stranger(int(keys[group]), stranger, clock)
        return rows[known], times[known]

    def _meet_stranger(self, key: int, stranger: Stranger, clock: int) -> None:
        if stranger.time >= clock:
            self.state.strangers.append(stranger)
        else:
            work = self._work(key, stranger.group, stranger.system)
            work.strangers.append((stranger.member_id, stranger.time))

    # ---- groups

    def _advance_groups(self, settled: Settled, clock: int, batch_ms: int) -> Iterator[Row]:
        state = self.state
        touched = settled.restless | state.watch.due(clock)
        if self._moves:
            touched |= state.watch.subscribed(self._moves)
        keys = np.fromiter(self._works, dtype=np.uint64, count=len(self._works))
        numbers = state.find(keys)
        touched[numbers[numbers >= 0]] = True
        perhaps = np.zeros(len(touched), dtype=np.bool_)
        perhaps[state.live.numbers[settled.members[settled.behind]]] = True
        asked = np.flatnonzero(touched | perhaps)
        pairs = self._pairs_of(settled, touched | perhaps)
        for start in range(0, len(asked), _CHUNK):
            yield from self._advance_known(asked[start : start + _CHUNK], touched, settled, pairs, clock, batch_ms)
        for key in sorted(keys[numbers < 0].tolist()):
            work = self._works[key]
            record = Record(work.name, work.system, None, None, b"")
            group = self._logic.new_group(self.cluster, work.system, work.name)
            yield from self._advance_one(key, record, group, {}, {}, [], clock, batch_ms)
        self._write()

    def _pairs_of(self, settled: Settled, asked: np.ndarray[Any, np.dtype[np.bool_]]) -> _Pairs:
        groups = self.state.live.numbers[settled.members]
        chosen = asked[groups]
        members, times, behind = settled.members[chosen], settled.times[chosen], settled.behind[chosen]
        order = np.lexsort((times, members))
        return _Pairs(groups[chosen][order], members[order], times[order], behind[order].tolist())

    def _advance_known(
        self,
        numbers: Int64,
        touched: np.ndarray[Any, np.dtype[np.bool_]],
        settled: Settled,
        pairs: _Pairs,
        clock: int,
        batch_ms: int,
    ) -> Iterator[Row]:
        """Advance groups that are known: a chunk of them, ascending."""
        state, logic = self.state, self._logic
        records = [state.record(number) for number in numbers.tolist()]
        groups = [logic.decode_group(record.group) for record in records]
        ids: list[list[str]] = [
            list(logic.members_by_heartbeat(group)) if record.seen is None else []
            for record, group in zip(records, groups, strict=True)
        ]
        keys = iter(cut_keys([member_id for of_group in ids for member_id in of_group]).tolist())
        firsts = np.searchsorted(pairs.groups, numbers).tolist()
        lasts = np.searchsorted(pairs.groups, numbers, side="right").tolist()
        waiting = set(np.unique(state.live.numbers[state.live.waiting_members]).tolist())
        for at, number in enumerate(numbers.tolist()):
            record, key = records[at], int(state.groups.keys[number])
            names = {next(keys): member_id for member_id in ids[at]}
            rows = state.rows_of(number)
            row_keys = state.live.keys[rows].tolist()
            if sorted(names) != row_keys:
                raise InvariantError(f"members of group {record.name}", sorted(names.values()), row_keys)
            if number in waiting:
                self._names |= {(key, row_key): (record, names[row_key]) for row_key in row_keys}
            last = settled.last_before[rows].tolist()
            seen = {names[row_key]: at_ms for row_key, at_ms in zip(row_keys, last, strict=True)}
            beats, late = self._beats(record, seen, names, row_keys, rows.start, pairs, firsts[at], lasts[at])
            if touched[number] or late:
                yield from self._advance_one(key, record, groups[at], seen, beats, late, clock, batch_ms)

    def _beats(
        self,
        record: Record,
        seen: dict[str, int],
        names: dict[int, str],
        row_keys: list[int],
        first_row: int,
        pairs: _Pairs,
        first: int,
        last: int,
    ) -> tuple[dict[str, list[int]], list[tuple[str, int]]]:
        """Sort a group's due heartbeats of known members: those that count, those that came late."""
        beats: dict[str, list[int]] = {}
        late: list[tuple[str, int]] = []
        times = pairs.times[first:last].tolist()
        for offset, row in enumerate(pairs.members[first:last].tolist()):
            at, member_id = times[offset], names[row_keys[row - first_row]]
            if pairs.behind[first + offset] and record.last_applied is not None and at < record.last_applied:
                late.append((member_id, at))
            elif at > seen[member_id]:
                known = beats.setdefault(member_id, [])
                if not known or at > known[-1]:
                    known.append(at)
        return beats, late

    def _advance_one(
        self,
        key: int,
        record: Record,
        group: Any,
        seen: dict[str, int],
        beats: dict[str, list[int]],
        late_beats: list[tuple[str, int]],
        clock: int,
        batch_ms: int,
    ) -> Iterator[Row]:
        state, before = self.state, self.state.clock_before
        if record.seen is not None:
            seen = record.seen
        ledger = state.repeats.of(key)
        events: list[Due] = []
        late_rows: dict[str, CarriedEvent] = {}
        work = self._works.get(key)
        mine, moves = self._moves_for(key, work)
        told: list[tuple[AnyEvent, CarriedEvent]] = [*(work.events if work else ()), *moves]
        for event, carried in sorted(told, key=lambda pair: order_of(pair[1])):
            late = _is_older(event.event_time, before) and _is_older(event.event_time, record.last_applied)
            if isinstance(event, TopicQueues):
                late = late and event.topic in mine
            elif late and ledger.was_applied(carried.event_id, event.event_time):
                continue
            if late:
                late_rows[carried.event_id] = carried
            events.append(Due(event, carried.event_id, late, carried.source, carried.position))
        for member_id, at in sorted(work.strangers if work else ()):
            last = seen.get(member_id)
            if _is_older(at, before) and _is_older(at, record.last_applied) and (last is None or at < last):
                late_beats.append((member_id, at))
            elif last is None or at > last:
                known = beats.setdefault(member_id, [])
                if not known or at > known[-1]:
                    known.append(at)
        for member_id, at in sorted(set(late_beats)):
            carried = carry_event(self._heartbeat(record, member_id, at), "", "")
            late_rows[carried.event_id] = carried
            events.append(Due(read_event(carried), carried.event_id, late=True))
        facts = GroupFacts(
            cluster=self.cluster,
            system=record.system,
            group_id=record.name,
            clock_before=before,
            clock=clock,
            detected_at=batch_ms,
            events=events,
            heartbeats=beats,
            last_seen=seen,
            progress=state.commits.of(key),
        )
        advanced = self._logic.advance(group, facts, state.topics, ledger, self._rules)
        for event_id, carried in late_rows.items():
            if event_id not in advanced.unheeded:
                detail = "older than what was applied to its group: applied at the clock, and marked"
                state.header.late += 1
                yield self._late_row(carried, detail, record.name, batch_ms)
        yield from advanced.rebalances
        yield from advanced.changes
        yield from advanced.rejected
        self._keep(key, record, group, advanced)

    def _moves_for(self, key: int, work: _Work | None) -> tuple[set[str], list[tuple[TopicQueues, CarriedEvent]]]:
        """Answer the topics that a group subscribes to, or may as of this batch's events, and how they changed.

        A member that comes back without saying to what it subscribes may bring any topic back: then all changes
        are told, and the group passes over those that are nothing to it.
        """
        if not self._moves:
            return set(), []
        number = int(self.state.find(np.asarray([key], dtype=np.uint64))[0])
        hashes = self.state.watch.topics_of(number) if number >= 0 else frozenset[int]()
        mine = {topic for one in hashes for topic in self._moved_hashes.get(one, ())}
        returning = False
        if work is not None:
            returning = number >= 0 and bool(work.strangers)
            for event, _ in work.events:
                mine |= topics_in(event)
                returning |= isinstance(event, MemberJoined | Heartbeat) and event.subscriptions is None
        told = sorted(self._moves) if returning else sorted(mine & self._moves.keys())
        return mine, [move for topic in told for move in self._moves[topic]]

    def _heartbeat(self, record: Record, member_id: str, at: int) -> Heartbeat:
        return Heartbeat(
            schema_version=1,
            event_time=at,
            system=record.system,
            cluster=self.cluster,
            group=record.name,
            member_id=member_id,
        )

    def _keep(self, key: int, record: Record, group: Any, advanced: Advanced) -> None:
        last_seen, wake_at = advanced.last_seen, advanced.wake_at
        collide = len(last_seen) > 1 and len(set(cut_keys(list(last_seen)).tolist())) < len(last_seen)
        if collide:
            deadlines = [at + advanced.session_timeouts_ms[member_id] for member_id, at in last_seen.items()]
            wake_at = min([*deadlines, *([] if wake_at is None else [wake_at])])
        stored = Record(
            name=record.name,
            system=record.system,
            last_applied=advanced.last_applied_ms,
            seen=dict(sorted(last_seen.items())) if collide else None,
            group=self._logic.encode_group(group),
        )
        self._written[key] = Written(
            record=msgspec.msgpack.encode(stored),
            last_seen={} if collide else last_seen,
            session_timeouts_ms=advanced.session_timeouts_ms,
            wake_at=wake_at,
            topics=[topic_hash(topic) for topic in advanced.topics],
        )

    def _write(self) -> None:
        """Write the groups back; what waits of members that have gone waits under their names."""
        for key, row_key, at in self.state.write(self._written):
            record, member_id = self._names[key, row_key]
            self.state.strangers.append(Stranger(record.system, record.name, member_id, at))

    def _late_row(self, carried: CarriedEvent, detail: str, group_id: str | None, batch_ms: int) -> Rejected:
        return self._rejected(carried, Rejection("late", detail, self.cluster, group_id), batch_ms)

    def _rejected(self, carried: CarriedEvent, rejection: Rejection, batch_ms: int) -> Rejected:
        return rejected(
            rejection,
            carried.content,
            source=carried.source,
            position=carried.position,
            seen_at=batch_ms,
            raw_limit_bytes=self._rules.raw_limit_bytes,
        )


def _system_of(packets: Sequence[Packet]) -> System | None:
    for packet in packets:
        if packet.heartbeats is not None and packet.heartbeats.systems:
            return SYSTEMS[packet.heartbeats.systems[0]]  # type: ignore[return-value]
        if packet.events:
            return read_event(packet.events[0]).system
    return None


def _is_older(time_ms: int, than: int | None) -> bool:
    return than is not None and time_ms < than


def topics_in(event: AnyEvent) -> set[str]:
    """Answer the topics that an event of a group names."""
    if isinstance(event, MemberJoined | Heartbeat):
        return set(event.subscriptions or ())
    if isinstance(event, GroupSnapshot):
        named = {topic for member in event.members for topic in member.subscriptions or ()}
        return named | {queue.topic for queues in (event.assignments or {}).values() for queue in queues}
    if isinstance(event, AssignmentReported):
        return {queue.topic for queue in event.queues}
    return set()


def _group_of(event: AnyEvent) -> str:
    if isinstance(event, TopicQueues | Clock):
        raise InvariantError("an event without a group", "a group", type(event).__name__)
    return event.group
