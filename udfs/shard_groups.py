"""Core: the groups of a shard that must decide in a batch: what each is told, what is kept of its answer. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np

from udfs.errors import InvariantError
from udfs.events import AnyEvent, AssignmentReported, GroupSnapshot, Heartbeat, MemberJoined, System, TopicQueues
from udfs.facts import Advanced, Due, GroupFacts, GroupLogic
from udfs.journal import Change, Rebalance, Rejected
from udfs.liveness import Bools, Settled
from udfs.packing import CarriedEvent, Int64, UInt64, carry_event, order_of, read_event
from udfs.rejection import Rejection, rejected
from udfs.rules import Rules
from udfs.shard_state import Record, ShardState, Stranger, Written, cut_keys
from udfs.watch import topic_hash

Row: TypeAlias = Rebalance | Change | Rejected
_CHUNK = 512  # groups decoded at a time: bounds memory, and hashes their members' ids at once
# Source and position of a heartbeat that travelled packed: from which line or record it came is not known any more.
_PACKED = "packed"


class Work:
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


class ShardGroups:
    """The groups of one shard through one batch: first given what is due, then advanced once."""

    def __init__(self, cluster: str, state: ShardState, rules: Rules, logic: GroupLogic) -> None:
        self._cluster = cluster
        self._state = state
        self._rules = rules
        self._logic = logic
        self._works: dict[int, Work] = {}
        self._moves: dict[str, list[tuple[TopicQueues, CarriedEvent]]] = {}
        self._moved_hashes: dict[int, list[str]] = {}
        self._names: dict[tuple[int, int], tuple[Record, str]] = {}
        self._advanced: list[tuple[int, Record, bytes, Advanced]] = []

    def work(self, key: int, name: str, system: System) -> Work:
        """Answer what is due for a group, to be added to."""
        work = self._works.get(key)
        if work is None:
            work = self._works[key] = Work(name, system)
        return work

    def move(self, event: TopicQueues, carried: CarriedEvent) -> None:
        """Tell of a topic that changed; in the order of the changes."""
        if event.topic not in self._moves:
            self._moves[event.topic] = []
            self._moved_hashes.setdefault(topic_hash(event.topic), []).append(event.topic)
        self._moves[event.topic].append((event, carried))

    def advance(self, settled: Settled, clock: int, batch_ms: int) -> Iterator[Row]:
        """Advance every group for which something is due, known ones first, and write all of them back."""
        state = self._state
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
            group = self._logic.new_group(self._cluster, work.system, work.name)
            yield from self._advance_one(key, record, group, {}, {}, [], clock, batch_ms)
        self._write()

    def _pairs_of(self, settled: Settled, asked: Bools) -> _Pairs:
        groups = self._state.live.numbers[settled.members]
        chosen = asked[groups]
        members, times, behind = settled.members[chosen], settled.times[chosen], settled.behind[chosen]
        order = np.lexsort((times, members))
        return _Pairs(groups[chosen][order], members[order], times[order], behind[order].tolist())

    def _advance_known(
        self,
        numbers: Int64,
        touched: Bools,
        settled: Settled,
        pairs: _Pairs,
        clock: int,
        batch_ms: int,
    ) -> Iterator[Row]:
        """Advance groups that are known: a chunk of them, ascending."""
        state, logic = self._state, self._logic
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
        state, before = self._state, self._state.clock_before
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
            carried = carry_event(self._heartbeat(record, member_id, at), _PACKED, _PACKED)
            late_rows[carried.event_id] = carried
            events.append(Due(read_event(carried), carried.event_id, late=True))
        facts = GroupFacts(
            cluster=self._cluster,
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
                yield self.late_row(carried, detail, record.name, batch_ms)
        yield from advanced.rebalances
        yield from advanced.changes
        yield from advanced.rejected
        self._keep(key, record, group, advanced)

    def _moves_for(self, key: int, work: Work | None) -> tuple[set[str], list[tuple[TopicQueues, CarriedEvent]]]:
        """Answer the topics that a group subscribes to, or may as of this batch's events, and how they changed.

        A member that comes back without saying to what it subscribes may bring any topic back: then all changes
        are told, and the group passes over those that are nothing to it.
        """
        if not self._moves:
            return set(), []
        number = int(self._state.find(np.asarray([key], dtype=np.uint64))[0])
        hashes = self._state.watch.topics_of(number) if number >= 0 else frozenset[int]()
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
            cluster=self._cluster,
            group=record.name,
            member_id=member_id,
        )

    def _keep(self, key: int, record: Record, group: Any, advanced: Advanced) -> None:
        self._advanced.append((key, record, self._logic.encode_group(group), advanced))

    def _write(self) -> None:
        """Write the groups back; what waits of members that have gone waits under their names."""
        ids = [member_id for _, _, _, advanced in self._advanced for member_id in advanced.last_seen]
        all_keys = cut_keys(ids)
        written: dict[int, Written] = {}
        start = 0
        for key, record, group, advanced in self._advanced:
            count = len(advanced.last_seen)
            written[key] = _written(record, group, advanced, all_keys[start : start + count])
            start += count
        for key, row_key, at in self._state.write(written):
            record, member_id = self._names[key, row_key]
            self._state.strangers.append(Stranger(record.system, record.name, member_id, at))

    def late_row(self, carried: CarriedEvent, detail: str, group_id: str | None, batch_ms: int) -> Rejected:
        """Answer the row that lists a late event."""
        return self.rejected(carried, Rejection("late", detail, self._cluster, group_id), batch_ms)

    def rejected(self, carried: CarriedEvent, rejection: Rejection, batch_ms: int) -> Rejected:
        """Answer the row that lists an event that was not applied as sent."""
        return rejected(
            rejection,
            carried.content,
            source=carried.source,
            position=carried.position,
            seen_at=batch_ms,
            raw_limit_bytes=self._rules.raw_limit_bytes,
        )


def _written(record: Record, group: bytes, advanced: Advanced, keys: UInt64) -> Written:
    """Answer what is stored of a group; ``keys`` of the members of ``last_seen``, in its order."""
    last_seen, wake_at = advanced.last_seen, advanced.wake_at
    collide = len(set(keys.tolist())) < len(keys)
    if collide:
        deadlines = [at + advanced.session_timeouts_ms[member_id] for member_id, at in last_seen.items()]
        wake_at = min([*deadlines, *([] if wake_at is None else [wake_at])])
    stored = Record(
        name=record.name,
        system=record.system,
        last_applied=advanced.last_applied_ms,
        seen=dict(sorted(last_seen.items())) if collide else None,
        group=group,
    )
    return Written(
        record=msgspec.msgpack.encode(stored),
        last_seen={} if collide else last_seen,
        session_timeouts_ms=advanced.session_timeouts_ms,
        wake_at=wake_at,
        topics=[topic_hash(topic) for topic in advanced.topics],
    )


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
