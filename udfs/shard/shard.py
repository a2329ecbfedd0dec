"""Core: one shard of one cluster in one batch: its clock, its due events, its due groups. No I/O.

A group is decoded only when something about it is due: an event of its own, a heartbeat of an unknown member or after
a missed deadline, a deadline, a change of one of its topics, or the time at which it requested to be woken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np

from udfs.model.arrays import Int64, UInt64, find_sorted
from udfs.model.config import CoreConfig
from udfs.model.errors import InvariantError
from udfs.model.events import AnyEvent, Clock, CommitsDeleted, GroupSnapshot, Progress, QueueEnds, TopicQueues
from udfs.model.group_api import GroupLogic
from udfs.model.journal import Change, ClusterBegun, ClusterObserved, Rejected
from udfs.model.observations import DELETED
from udfs.model.rejection import Rejection, key_collision
from udfs.model.stall_rule import StallRule
from udfs.model.systems import BY_NUMBER
from udfs.packets.packet import (
    CarriedEvent,
    PackedHeartbeats,
    Packet,
    cluster_key,
    group_keys,
    progress_queues,
    queue_keys,
    read_event,
    shard_of,
    topic_key,
)
from udfs.packets.progress_columns import ProgressColumns
from udfs.shard.clock_skew import advance_skew
from udfs.shard.cluster_clock import move_clock
from udfs.shard.liveness import AppliedHeartbeats, places_of
from udfs.shard.progress_rows import progress_rows
from udfs.shard.queue_spans import SpanRows
from udfs.shard.savepoint import MARK, restore
from udfs.shard.shard_groups import Row, ShardGroups
from udfs.shard.state import ShardState, UnknownMemberHeartbeat, cut_keys

__all__ = ["Row", "Shard"]

_DeletedCommits: TypeAlias = tuple[int, CommitsDeleted, CarriedEvent]  # with the key of the group
_WITHOUT_GROUP = (TopicQueues, QueueEnds, Clock)


class Shard:
    """One shard of one cluster, opened for one batch.

    Args:
        data: The state that ``encode`` returned after the previous batch; None at first.
    """

    def __init__(self, cluster: str, number: int, data: bytes | None, config: CoreConfig, logic: GroupLogic) -> None:
        self.cluster = cluster
        self.number = number
        self.state = ShardState(cluster, data, config)
        self._config = config
        self._logic = logic
        self._is_new = data is None
        self._groups = ShardGroups(cluster, self.state, config, logic)

    def encode(self) -> bytes:
        """Return the state after the batch."""
        return self.state.encode()

    def advance(self, packets: Sequence[Packet], batch_ms: int) -> Iterator[Row]:
        """Apply a batch and yield its output. The state is complete once the output has been read to its end.

        Args:
            packets: All packets of the batch for this shard. batch_ms: The batch's own timestamp.
        """
        state = self.state
        if self._is_new and self._config.silence == "expire":
            yield ClusterBegun(cluster=self.cluster)
        arrived = [carried for packet in packets for carried in packet.events]
        named = [packet.system for packet in packets if packet.system is not None]
        if named:
            state.header.system = BY_NUMBER[min(named)]
        if any(MARK in carried.content for carried in arrived):
            arrived, refused = self._restore(arrived, batch_ms)
            yield from refused
        clock, ahead = move_clock(state, packets, arrived, batch_ms, self._config)
        yield from self._report_losses(packets, clock)
        yield from self._advance_silence(packets, clock)
        yield from self._observed(packets, clock, batch_ms)
        if ahead is not None and self._is_mine(cluster_key(self.cluster)):
            yield from advance_skew(state.silence, self.cluster, ahead, batch_ms)
        if clock is None:
            state.events = state.events + arrived
            return
        due = self._due_events(arrived, clock)
        yield from self._report_losses_of_collectors(due, clock)
        yield from self._advance_topics(due, batch_ms)
        state.commits.add_packed([packet.progress for packet in packets if packet.progress is not None])
        for packet in packets:
            if packet.ends is not None:
                state.commits.add_ends(packet.ends)
        deleted = self._assign(due)
        state.commits.make_due(clock)
        forget_before = (state.clock_before or 0) - self._config.forget_after_ms
        for key, (name, system) in state.commits.beginning_groups(state.find, forget_before):
            self._groups.input_of(key, name, system)
        for key, event, carried in deleted:
            if self._groups.has_group(key):
                self._groups.input_of(key, event.group, event.system).events.append((event, carried))
        applied = self._apply_due_heartbeats(packets, clock)
        self._groups.note_deletions()
        rule = StallRule.of(self._config)
        is_evaluated = rule.passes(state.clock_before, clock)
        flush = any(packet.flush for packet in packets)
        spans = self._apply_progress(clock, flush, rule) if is_evaluated else None
        yield from self._groups.advance(applied, clock, batch_ms)
        if not is_evaluated:
            spans = self._apply_progress(clock, flush, None)
        if spans is not None:
            yield from progress_rows(self.cluster, state.commits.table, spans, self._config.queue_progress_ms)

    def _apply_progress(self, clock: int, flush: bool, rule: StallRule | None) -> SpanRows | None:
        span_ms, before = self._config.queue_progress_ms, self.state.clock_before
        return self.state.commits.apply_due(
            span_ms=span_ms,
            before=before,
            clock=clock,
            flush=flush,
            rule=rule,
            share=self._config.retention_risk_share,
        )

    def _restore(self, arrived: list[CarriedEvent], batch_ms: int) -> tuple[list[CarriedEvent], list[Rejected]]:
        others, refused = restore(self.state, arrived, self._is_mine)
        rows = []
        for event, carried, violation in refused:
            if not isinstance(event, TopicQueues) or self._is_home(event.topic):
                group_id = event.group if isinstance(event, GroupSnapshot) else None
                rows.append(self._groups.rejected(carried, Rejection(*violation, self.cluster, group_id), batch_ms))
        return others, rows

    # ---- time

    def _advance_silence(self, packets: Sequence[Packet], clock: int | None) -> list[Change]:
        if not self._is_mine(cluster_key(self.cluster)):
            return []
        spans = [span for packet in packets for span in packet.first_and_last_times]
        return self.state.silence.advance(self.cluster, spans, clock, self._config.source_silent_after_ms)

    def _observed(self, packets: Sequence[Packet], clock: int | None, batch_ms: int) -> list[ClusterObserved]:
        """Return how far the cluster is known, from its home shard alone, if events came."""
        times = [time for packet in packets for span in packet.first_and_last_times for time in span]
        newest_ms = self.state.silence.newest()
        if not times or newest_ms is None:
            return []
        latest_ms = max((time for time in times if time <= batch_ms), default=max(times))
        return [
            ClusterObserved(
                cluster=self.cluster,
                system=self.state.header.system,
                latest_ms=latest_ms,
                newest_ms=newest_ms,
                clock_ms=clock,
            )
        ]

    def _report_losses(self, packets: Sequence[Packet], clock: int | None) -> list[Change]:
        """Return the findings for input that was deleted before it was read; marks apply regardless of the clock."""
        silence = self.state.silence
        lost = [loss for packet in packets for loss in packet.losses]
        if not (lost or silence.losses) or not self._is_mine(cluster_key(self.cluster)):
            return []
        return silence.report_losses(self.cluster, lost, clock, silence.newest())

    def _report_losses_of_collectors(self, due: Sequence[tuple[AnyEvent, CarriedEvent]], clock: int) -> list[Change]:
        lost = [loss for event, _ in due if isinstance(event, Clock) for loss in event.lost or ()]
        if not lost or not self._is_mine(cluster_key(self.cluster)):
            return []
        return self.state.silence.report_losses(self.cluster, lost, clock)

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
        changed = [(event, carried) for event, carried in due if isinstance(event, TopicQueues)]
        if not changed:
            return []
        moves, late, collided, changes = self.state.topics.apply(changed, self.state.dedup)
        for event, carried in moves:
            self._groups.add_topic_change(event, carried)
        rows: list[Row] = [change for change in changes if self._is_home(change.subject or "")]
        for event, carried in late:
            self.state.header.late_topics += 1
            if self._is_home(event.topic):
                detail = f"older than the current state of topic {event.topic}: it is ignored"
                rows.append(self._groups.late_row(carried, detail, None, batch_ms))
        for (event, carried), name in collided:
            if self._is_home(event.topic):
                rejection = Rejection("topic_key_collision", key_collision("topic", name), self.cluster)
                rows.append(self._groups.rejected(carried, rejection, batch_ms))
        return rows

    def _is_mine(self, key: int) -> bool:
        return shard_of(key, self._config.shards) == self.number

    def _is_home(self, topic: str) -> bool:
        return self._is_mine(topic_key(self.cluster, topic))

    def _assign(self, due: Sequence[tuple[AnyEvent, CarriedEvent]]) -> list[_DeletedCommits]:
        """Give each due event to its group; return deleted commits that are evidence, if there is such a group."""
        mine = [pair for pair in due if not isinstance(pair[0], _WITHOUT_GROUP)]
        names = [_group_of(event) for event, _ in mine]
        deleted: list[_DeletedCommits] = []
        for key, name, (event, carried) in zip(group_keys(self.cluster, names).tolist(), names, mine, strict=True):
            if isinstance(event, CommitsDeleted):
                deleted.append((key, event, carried))
                continue
            if isinstance(event, Progress):
                queues = queue_keys(progress_queues(event))
                times = np.full(len(queues), event.event_time, dtype=np.int64)
                self.state.commits.add(
                    ProgressColumns.of_commits(np.full(len(queues), key, dtype=np.uint64), queues, times)
                )
                continue
            self._groups.input_of(key, name, event.system).events.append((event, carried))
        return self._delete_commits(deleted)

    def _delete_commits(self, deleted: Sequence[_DeletedCommits]) -> list[_DeletedCommits]:
        """End the commits of queues; for a group that is deleted with them they are no evidence."""
        deletions = {key: frozenset(self._groups.deletions(key)) for key in {key for key, _, _ in deleted}}
        for key, event, _ in deleted:
            queues = queue_keys(progress_queues(event))
            groups = np.full(len(queues), key, np.uint64)
            times = np.full(len(queues), event.event_time, np.int64)
            self.state.commits.add(ProgressColumns.of_commits(groups, queues, times, np.full(len(queues), DELETED)))
        return [deletion for deletion in deleted if deletion[1].event_time not in deletions[deletion[0]]]

    # ---- heartbeats

    def _apply_due_heartbeats(self, packets: Sequence[Packet], clock: int) -> AppliedHeartbeats:
        """Apply heartbeats of members with a row in the arrays; pass the others to their groups, or let them wait."""
        members = [np.empty(0, dtype=np.int64)]
        times = [np.empty(0, dtype=np.int64)]
        places = self.state.live.places()
        waiting = self.state.unknown_member_heartbeats
        self.state.unknown_member_heartbeats = []
        if waiting:
            keys = group_keys(self.cluster, [heartbeat.group for heartbeat in waiting])
            rows = self._rows(places, self.state.find(keys), cut_keys([heartbeat.member_id for heartbeat in waiting]))
            members.append(rows[rows >= 0])
            times.append(np.asarray([heartbeat.time for heartbeat in waiting], dtype=np.int64)[rows >= 0])
            for key, row, heartbeat in zip(keys.tolist(), rows.tolist(), waiting, strict=True):
                if row < 0:
                    self._take_unknown_member(key, heartbeat, clock)
        for packet in packets:
            if packet.heartbeats is not None:
                existing, at = self._existing_pairs(places, packet.heartbeats, clock)
                members.append(existing)
                times.append(at)
        return self.state.live.apply_due(np.concatenate(members), np.concatenate(times), self.state.clock_before, clock)

    @staticmethod
    def _rows(places: UInt64, groups: Int64, keys: UInt64) -> Int64:
        rows = find_sorted(places, places_of(groups, keys))
        return np.asarray(np.where(groups >= 0, rows, -1))

    def _existing_pairs(self, places: UInt64, packed: PackedHeartbeats, clock: int) -> tuple[Int64, Int64]:
        keys, owners, member_keys, pair_members, times = packed.columns()
        rows = self._rows(places, self.state.find(keys)[owners], member_keys)[pair_members]
        existing = rows >= 0
        if existing.all():
            return rows, times
        names, ids = packed.group_names.unpack(), packed.member_names.unpack()
        for pair in np.flatnonzero(~existing).tolist():
            member = int(pair_members[pair])
            group = int(owners[member])
            unknown = UnknownMemberHeartbeat(
                BY_NUMBER[packed.systems[group]], names[group], ids[member], int(times[pair])
            )
            self._take_unknown_member(int(keys[group]), unknown, clock)
        return rows[existing], times[existing]

    def _take_unknown_member(self, key: int, unknown: UnknownMemberHeartbeat, clock: int) -> None:
        if unknown.time >= clock:
            self.state.unknown_member_heartbeats.append(unknown)
        else:
            collected = self._groups.input_of(key, unknown.group, unknown.system)
            collected.unknown_member_heartbeats.append((unknown.member_id, unknown.time))


def _group_of(event: AnyEvent) -> str:
    if isinstance(event, _WITHOUT_GROUP):
        raise InvariantError("an event without a group", "a group", type(event).__name__)
    return event.group
