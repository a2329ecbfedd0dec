"""Core: gives each due group of a shard its input, and stores its new state and output. No I/O."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from udfs.model.arrays import Int64
from udfs.model.config import CoreConfig
from udfs.model.errors import InvariantError
from udfs.model.events import TopicQueues
from udfs.model.group_api import GroupInput, GroupLogic, GroupOutput
from udfs.model.journal import Change, ClusterBegun, ClusterObserved, Rebalance, Rejected, Unfinished
from udfs.model.queue_progress import QueueProgress
from udfs.model.rejection import Rejection, key_collision, rejected
from udfs.model.systems import System
from udfs.packets.packet import CarriedEvent, order_of
from udfs.shard.backlog import BatchInput, CollectedInput
from udfs.shard.deleted_groups import deletions_of
from udfs.shard.due_input import may_bring_back, sort_due, topics_in, unpacked_heartbeat
from udfs.shard.liveness import AppliedHeartbeats, Bools
from udfs.shard.state import Record, ShardState, UnknownMemberHeartbeat, Written, cut_keys, written_of
from udfs.shard.topics import TopicsAtBatch
from udfs.shard.wake_index import topic_hash

Row: TypeAlias = Rebalance | Change | Rejected | ClusterBegun | ClusterObserved | QueueProgress | Unfinished
_CHUNK = 512  # groups decoded at a time: bounds memory, and hashes their members' ids at once


class _DueHeartbeats(NamedTuple):
    """The due heartbeats of the groups being advanced, by group, member, time."""

    groups: Int64
    members: Int64
    times: Int64
    is_late: Sequence[bool]


class ShardGroups:
    """The groups of one shard in one batch: they first collect their due input, then advance once."""

    def __init__(self, cluster: str, state: ShardState, config: CoreConfig, logic: GroupLogic) -> None:
        self._cluster = cluster
        self._state = state
        self._config = config
        self._logic = logic
        # Input is kept by key, then by name, so that two groups with one key are not merged.
        self._collected: dict[int, dict[str, CollectedInput]] = {}
        self._topic_changes: dict[str, list[tuple[TopicQueues, CarriedEvent]]] = {}
        self._changed_hashes: dict[int, list[str]] = {}
        self._names: dict[tuple[int, int], tuple[Record, str]] = {}
        self._advanced: list[tuple[int, Record, bytes, GroupOutput]] = []

    def input_of(self, key: int, name: str, system: System) -> CollectedInput:
        """Return a group's collected input, to be added to."""
        by_name = self._collected.setdefault(key, {})
        if name not in by_name:
            by_name[name] = CollectedInput(name, system)
        return by_name[name]

    def has_group(self, key: int) -> bool:
        """Return whether there is a group with that key, or some input for one."""
        return key in self._collected or bool(self._state.find(np.asarray([key], np.uint64))[0] >= 0)

    def deletions(self, key: int) -> list[int]:
        """Return when the group's collected input deletes it."""
        return deletions_of(
            event for collected in self._collected.get(key, {}).values() for event, _ in collected.events
        )

    def add_topic_change(self, event: TopicQueues, carried: CarriedEvent) -> None:
        """Record a topic's change; called in the order of the changes."""
        if event.topic not in self._topic_changes:
            self._changed_hashes.setdefault(topic_hash(event.topic), []).append(event.topic)
        self._topic_changes.setdefault(event.topic, []).append((event, carried))

    def note_deletions(self) -> None:
        """Record which groups their collected input deletes."""
        for key in self._collected:
            self._state.commits.note_deletions(key, self.deletions(key))

    def advance(self, applied: AppliedHeartbeats, clock: int, batch_ms: int) -> Iterator[Row]:
        """Advance every due group, existing ones first, and store their new state."""
        state = self._state
        touched = applied.due_groups | state.wake_index.due(clock)
        if self._topic_changes:
            touched |= state.wake_index.subscribed(self._topic_changes)
        keys = np.fromiter(self._collected, dtype=np.uint64, count=len(self._collected))
        numbers = state.find(keys)
        touched[numbers[numbers >= 0]] = True
        touched[state.find(np.asarray(state.backlog.groups, dtype=np.uint64))] = True
        touched[state.seen_in_commits()] = True
        maybe_late = np.zeros(len(touched), dtype=np.bool_)
        maybe_late[state.live.numbers[applied.members[applied.is_late]]] = True
        due = np.flatnonzero(touched | maybe_late)
        heartbeats = self._due_heartbeats(applied, touched | maybe_late)
        for start in range(0, len(due), _CHUNK):
            yield from self._advance_existing(
                due[start : start + _CHUNK], touched, applied, heartbeats, clock, batch_ms
            )
        for key in sorted(keys[numbers < 0].tolist()):
            collected = self._collected[key][min(self._collected[key])]
            yield from self._refuse_others(key, collected.name, batch_ms)
            record = Record(collected.name, collected.system, None, None, b"")
            group = self._logic.new_group(self._cluster, collected.system, collected.name)
            yield from self._advance_one(key, -1, record, group, {}, {}, [], clock, batch_ms)
        self._write()
        if state.backlog.groups:
            yield Unfinished(cluster=self._cluster, groups=len(state.backlog.groups))

    def _due_heartbeats(self, applied: AppliedHeartbeats, wanted: Bools) -> _DueHeartbeats:
        groups = self._state.live.numbers[applied.members]
        chosen = wanted[groups]
        members, times, is_late = applied.members[chosen], applied.times[chosen], applied.is_late[chosen]
        order = np.lexsort((times, members))
        return _DueHeartbeats(groups[chosen][order], members[order], times[order], is_late[order].tolist())

    def _advance_existing(
        self,
        numbers: Int64,
        touched: Bools,
        applied: AppliedHeartbeats,
        heartbeats: _DueHeartbeats,
        clock: int,
        batch_ms: int,
    ) -> Iterator[Row]:
        """Advance one chunk of existing groups, ascending."""
        state, logic = self._state, self._logic
        records = [state.record(number) for number in numbers.tolist()]
        groups = [logic.decode_group(record.group) for record in records]
        ids: list[list[str]] = [
            list(logic.members_by_heartbeat(group)) if record.last_heartbeats is None else []
            for record, group in zip(records, groups, strict=True)
        ]
        keys = iter(cut_keys([member_id for of_group in ids for member_id in of_group]).tolist())
        firsts = np.searchsorted(heartbeats.groups, numbers).tolist()
        lasts = np.searchsorted(heartbeats.groups, numbers, side="right").tolist()
        waiting = set(np.unique(state.live.numbers[state.live.waiting_members]).tolist())
        for at, number in enumerate(numbers.tolist()):
            record, key = records[at], int(state.groups.keys[number])
            yield from self._refuse_others(key, record.name, batch_ms)
            names = {next(keys): member_id for member_id in ids[at]}
            rows = state.rows_of(number)
            row_keys = state.live.keys[rows].tolist()
            if sorted(names) != row_keys:
                raise InvariantError(f"members of group {record.name}", sorted(names.values()), row_keys)
            if number in waiting:
                self._names |= {(key, row_key): (record, names[row_key]) for row_key in row_keys}
            last = applied.last_before[rows].tolist()
            last_heartbeats = {names[row_key]: at_ms for row_key, at_ms in zip(row_keys, last, strict=True)}
            if state.backlog.of(key):
                due = slice(firsts[at], lasts[at])
                times_of_rows = zip(heartbeats.members[due].tolist(), heartbeats.times[due].tolist(), strict=True)
                unsorted = [(names[row_keys[row - rows.start]], at_ms) for row, at_ms in times_of_rows]
                yield from self._apply_backlog(key, record, groups[at], last_heartbeats, unsorted, clock, batch_ms)
                continue
            in_time, late = self._split_due(
                record, last_heartbeats, names, row_keys, rows.start, heartbeats, firsts[at], lasts[at]
            )
            if touched[number] or late:
                yield from self._advance_one(
                    key, number, record, groups[at], last_heartbeats, in_time, late, clock, batch_ms
                )

    def _split_due(
        self,
        record: Record,
        last_heartbeats: dict[str, int],
        names: dict[int, str],
        row_keys: list[int],
        first_row: int,
        heartbeats: _DueHeartbeats,
        first: int,
        last: int,
    ) -> tuple[dict[str, list[int]], list[tuple[str, int]]]:
        """Split a group's due heartbeats of its members into those in time and late ones."""
        in_time: dict[str, list[int]] = {}
        late: list[tuple[str, int]] = []
        due_at = heartbeats.times[first:last].tolist()
        for offset, row in enumerate(heartbeats.members[first:last].tolist()):
            at, member_id = due_at[offset], names[row_keys[row - first_row]]
            if heartbeats.is_late[first + offset] and record.last_applied is not None and at < record.last_applied:
                late.append((member_id, at))
            elif at > last_heartbeats[member_id]:
                times = in_time.setdefault(member_id, [])
                if not times or at > times[-1]:
                    times.append(at)
        return in_time, late

    def _advance_one(
        self,
        key: int,
        number: int,
        record: Record,
        group: Any,
        last_heartbeats: dict[str, int],
        in_time: dict[str, list[int]],
        late: list[tuple[str, int]],
        clock: int,
        batch_ms: int,
    ) -> Iterator[Row]:
        """Apply this batch's input to a group; ``number`` is -1 for a new group."""
        collected = self._collected.get(key, {}).get(record.name)
        own_topics, topic_changes = self._topic_changes_for(number, collected)
        if record.last_heartbeats is not None:
            last_heartbeats = record.last_heartbeats
        given = self._batch_input(key, record.name, clock, topic_changes, own_topics)
        advanced = yield from self._apply_input(key, record, group, last_heartbeats, given, in_time, late, batch_ms, 0)
        if advanced.stopped_at is not None:
            held = given.held([(member_id, at) for member_id, times in in_time.items() for at in times])
            self._state.backlog.put(key, [held.since(advanced.stopped_at, advanced.observed_since)])
        self._keep(key, record, group, advanced)

    def _apply_backlog(
        self,
        key: int,
        record: Record,
        group: Any,
        last_heartbeats: dict[str, int],
        heartbeats: list[tuple[str, int]],
        clock: int,
        batch_ms: int,
    ) -> Iterator[Row]:
        """Apply a group's waiting input, the oldest batch first; this batch's input comes after it.

        Args:
            heartbeats: Its members' heartbeats due in this batch: member and time.
        """
        topic_changes = [change for topic in sorted(self._topic_changes) for change in self._topic_changes[topic]]
        now = self._batch_input(key, record.name, clock, topic_changes, set()).held(heartbeats)
        held = list(self._state.backlog.of(key))
        if now.only_moves_the_clock_after(held[-1]):
            held[-1].clock = clock
        else:
            held.append(now)
        if record.last_heartbeats is not None:
            last_heartbeats = record.last_heartbeats
        done = 0
        number = int(self._state.find(np.asarray([key], dtype=np.uint64))[0])
        topics = self._state.wake_index.topics_of(number)
        while held:
            given = BatchInput.of(held[0])
            given.own_topics.update(
                change.topic for change, _ in given.topic_changes if topic_hash(change.topic) in topics
            )
            given.own_topics.update(*(topics_in(event) for event, _ in given.events))
            advanced = yield from self._apply_input(key, record, group, last_heartbeats, given, {}, [], batch_ms, done)
            done += advanced.work
            record = record.after(advanced)
            last_heartbeats, topics = dict(advanced.last_heartbeat), frozenset(map(topic_hash, advanced.topics))
            if advanced.stopped_at is not None:
                held[0] = held[0].since(advanced.stopped_at, advanced.observed_since)
                break
            del held[0]
            if done >= self._config.max_group_work:
                break
        self._state.backlog.put(key, held)
        self._keep(key, record, group, advanced)

    def _batch_input(
        self,
        key: int,
        name: str,
        clock: int,
        topic_changes: list[tuple[TopicQueues, CarriedEvent]],
        own_topics: set[str],
    ) -> BatchInput:
        collected, commits = self._collected.get(key, {}).get(name), self._state.commits
        return BatchInput(
            batch=self._state.header.batches,
            clock_before=self._state.clock_before,
            clock=clock,
            events=collected.events if collected else [],
            topic_changes=topic_changes,
            own_topics=own_topics,
            heartbeats=collected.unknown_member_heartbeats if collected else [],
            progress=commits.of(key),
            offsets=commits.offsets_of(key),
            standstills=commits.standing.of(key),
            near=commits.near.of(key),
            falls=commits.falls_of(key),
        )

    def _apply_input(
        self,
        key: int,
        record: Record,
        group: Any,
        last_heartbeats: dict[str, int],
        given: BatchInput,
        in_time: dict[str, list[int]],
        late: list[tuple[str, int]],
        batch_ms: int,
        done: int,
    ) -> Generator[Row, None, GroupOutput]:
        """Apply one batch's input to a group and return its output; ``done``: its work in this batch so far."""
        state = self._state
        dedup = state.dedup.of(key)
        dedup.set_clock_before(given.clock_before)
        due = sort_due(self._cluster, record, last_heartbeats, given, in_time, late, dedup)
        group_input = GroupInput(
            cluster=self._cluster,
            system=record.system,
            group_id=record.name,
            clock_before=given.clock_before,
            clock=given.clock,
            detected_at=batch_ms,
            events=due.events,
            heartbeats=in_time,
            last_heartbeat=last_heartbeats,
            progress=given.progress,
            offsets=given.offsets,
            standstills=given.standstills,
            near=given.near,
            falls=given.falls,
            work_limit=self._config.max_group_work - done,
        )
        topics = TopicsAtBatch(state.topics, given.batch)
        advanced: GroupOutput = self._logic.advance(group, group_input, topics, dedup, self._config)
        outdated = {event_id: due.carriers[event_id] for event_id in advanced.outdated if event_id in due.carriers}
        for event_id, carried in (due.late_rows | outdated).items():
            if event_id not in advanced.ignored_event_ids:
                detail = "older than events already applied to its group: applied at the clock and marked as late"
                if event_id in advanced.outdated:
                    detail = "newer events have already set the fields that it carries: those fields are ignored"
                state.header.late += 1
                yield self.late_row(carried, detail, record.name, batch_ms)
        rows: list[Row] = [*advanced.rebalances, *advanced.changes, *advanced.rejected]
        yield from rows
        return advanced

    def _topic_changes_for(
        self, number: int, collected: CollectedInput | None
    ) -> tuple[set[str], list[tuple[TopicQueues, CarriedEvent]]]:
        """Return the topics that a group subscribes to, or may subscribe to after this batch, and their changes.

        A member that comes back without a subscription may bring back any topic: then all changes are returned, and the
        group ignores changes of other topics.
        """
        if not self._topic_changes:
            return set(), []
        hashes = self._state.wake_index.topics_of(number) if number >= 0 else frozenset[int]()
        own_topics = {topic for topic_hash in hashes for topic in self._changed_hashes.get(topic_hash, ())}
        returning = False
        if collected is not None:
            returning = number >= 0 and bool(collected.unknown_member_heartbeats)
            for event, _ in collected.events:
                own_topics |= topics_in(event)
                returning |= may_bring_back(event)
        topics = sorted(self._topic_changes) if returning else sorted(own_topics & self._topic_changes.keys())
        return own_topics, [change for topic in topics for change in self._topic_changes[topic]]

    def _refuse_others(self, key: int, name: str, batch_ms: int) -> Iterator[Rejected]:
        """Reject the input of other groups with the same key: only one group can have it."""
        for other, collected in sorted(self._collected.get(key, {}).items()):
            if other == name:
                continue
            rejection = Rejection("group_key_collision", key_collision("group", name), self._cluster, other)
            record = Record(other, collected.system, None, None, b"")
            carried = [event for _, event in collected.events]
            for heartbeat in collected.unknown_member_heartbeats:
                carried.append(unpacked_heartbeat(self._cluster, record, *heartbeat)[1])
            for event in sorted(carried, key=order_of):
                yield self.rejected(event, rejection, batch_ms)

    def _keep(self, key: int, record: Record, group: Any, advanced: GroupOutput) -> None:
        self._advanced.append((key, record, self._logic.encode_group(group), advanced))

    def _write(self) -> None:
        """Store the groups; waiting heartbeats of departed members are stored under the members' names."""
        ids = [member_id for _, _, _, advanced in self._advanced for member_id in advanced.last_heartbeat]
        all_keys = cut_keys(ids)
        written: dict[int, Written] = {}
        start = 0
        for key, record, group, advanced in self._advanced:
            count = len(advanced.last_heartbeat)
            written[key] = written_of(record, group, advanced, all_keys[start : start + count])
            start += count
        for key, row_key, at in self._state.write(written):
            record, member_id = self._names[key, row_key]
            self._state.unknown_member_heartbeats.append(
                UnknownMemberHeartbeat(record.system, record.name, member_id, at)
            )

    def late_row(self, carried: CarriedEvent, detail: str, group_id: str | None, batch_ms: int) -> Rejected:
        """Return the row that lists a late event."""
        return self.rejected(carried, Rejection("late", detail, self._cluster, group_id), batch_ms)

    def rejected(self, carried: CarriedEvent, rejection: Rejection, batch_ms: int) -> Rejected:
        """Return the row that lists an event that was not applied as sent."""
        return rejected(
            rejection,
            carried.content,
            source=carried.source,
            position=carried.position,
            seen_at=batch_ms,
            raw_limit_bytes=self._config.raw_limit_bytes,
        )
