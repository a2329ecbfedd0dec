"""What a group had committed is forgotten when it is deleted, and its queues show nothing any more."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tests.core_config import core_config
from tests.udfs.shard.shard_script import T0, Cluster, clock, count, ends, of_group
from udfs.group import coordinator
from udfs.model.events import (
    CommitsDeleted,
    GroupDeleted,
    GroupRecord,
    GroupSnapshot,
    MemberInfo,
    Progress,
    QueueOffset,
    QueueRef,
)
from udfs.model.journal import Rebalance
from udfs.model.observations import DELETED, UNKNOWN
from udfs.model.queue_progress import QueueProgress
from udfs.packets.packet import queue_key
from udfs.packets.progress_columns import NamedGroup, PackedEnds, PackedNames, ProgressColumns
from udfs.shard.commits import Commits
from udfs.shard.deleted_groups import DeletedQueues, deletions_of, deletions_of_rows, is_ended

SPAN = 100
QUEUE = queue_key("t", None, 0)
NAMES = PackedNames.pack({1: NamedGroup("g", "kafka")}, {QUEUE: ("t", None, 0)})


def committed(at: int, offset: int, group: str = "g") -> Progress:
    return Progress(**of_group(at, group), queues=(QueueOffset("t", 0, offset=offset),))


def after(commits: Commits, before: int | None, now: int, *, deleted: list[int]) -> Commits:
    """Apply what is due, and open the state anew."""
    commits.make_due(now)
    commits.note_deletions(1, deleted)
    commits.apply_due(span_ms=SPAN, before=before, clock=now, flush=False)
    return Commits(*commits.encode(None))


def commit(commits: Commits, at: int, offset: int) -> None:
    group_and_queue = np.array([1], np.uint64), np.array([QUEUE], np.uint64)
    commits.add(ProgressColumns.of_commits(*group_and_queue, np.array([at]), np.array([offset])), [NAMES])


def test_queues_of_a_deleted_group_give_no_rows_though_they_go_on_growing() -> None:
    config = core_config(shards=1, allowed_lateness_ms=0, queue_progress_ms=SPAN)
    cluster = Cluster(coordinator, config)
    rows = cluster.batch(committed(10, 5), committed(20, 7, "other"), ends("t", 30, q0=9), clock(40))
    rows += cluster.batch(GroupDeleted(**of_group(50, "g")), clock(60))
    for at in (150, 250, 350):
        rows += cluster.batch(ends("t", at, q0=at), clock(at + 40))
    rows += cluster.batch(committed(360, 2), clock(500))
    found = [row for row in rows if isinstance(row, QueueProgress)]
    shown = [((row.span_start - T0) // SPAN, row.queues[0][1]) for row in found if row.group_id == "g"]
    assert shown == [(0, None), (3, 2)]
    others = [((row.span_start - T0) // SPAN, row.queues[0][1]) for row in found if row.group_id == "other"]
    assert others == [(0, 7), (1, 7), (2, 7), (3, 7)]


def deleted(at: int, queue: int = 0, group: str = "g") -> CommitsDeleted:
    return CommitsDeleted(**of_group(at, group), queues=(QueueRef("t", queue),))


@pytest.mark.parametrize("cuts", [(), (150,), (230,), (40, 150, 240, 330), tuple(range(10, 500, 30))])
def test_a_deleted_commit_shows_once_more_without_offsets(cuts: tuple[int, ...]) -> None:
    config = core_config(shards=1, allowed_lateness_ms=0, queue_progress_ms=SPAN)
    both = (QueueOffset("t", 0, offset=5), QueueOffset("t", 1, offset=6))
    events = [
        Progress(**of_group(10, "g"), queues=both),
        *(ends("t", at, q0=at, q1=at) for at in (30, 130, 225, 260, 320, 420)),
        deleted(220),
        committed(350, 2),
        deleted(370),
        GroupDeleted(**of_group(410, "g")),
        deleted(410, 1),
    ]
    cluster, rows = Cluster(coordinator, config), []
    for start, end in pairwise((0, *cuts, 600)):
        rows += cluster.batch(*(event for event in events if start <= event.event_time - T0 < end), clock(end))
    rows += cluster.batch(clock(900))
    found = [row for row in rows if isinstance(row, QueueProgress)]
    shown = {
        ((row.span_start - T0) // SPAN, queue): (offset, end)
        for row in found
        for queue, offset, _, end, *_ in row.queues
    }
    first = {(0, 0): (5, 30), (1, 0): (5, 130), (2, 0): (None, None), (3, 0): (None, None)}
    other = {(0, 1): (6, 30), (1, 1): (6, 130), (2, 1): (6, 260), (3, 1): (6, 320), (4, 1): (None, None)}
    assert shown == first | other
    assert sum(len(row.queues) for row in found) == len(shown)


def test_queues_never_committed_leave_nothing_when_deleted() -> None:
    commits = Commits()
    queue = np.array([1], np.uint64), np.array([QUEUE], np.uint64)
    commits.add(ProgressColumns.of_commits(*queue, np.array([10]), np.array([DELETED])), [NAMES])
    commits = after(commits, None, 20, deleted=[])
    assert len(commits.table) == 0
    assert list(commits.waiting_times) == []


def test_a_deletion_waits_for_the_clock_in_the_state_and_costs_see_no_commit_after_it() -> None:
    commits = Commits()
    queue = np.array([1], np.uint64), np.array([QUEUE], np.uint64)
    commit(commits, 10, 5)
    commits.add(ProgressColumns.of_commits(*queue, np.array([30]), np.array([DELETED])), [NAMES])
    commits = after(commits, None, 20, deleted=[])
    assert commits.offsets_of(1) == {QUEUE: [(10, 5, UNKNOWN, UNKNOWN)]}
    commits.make_due(40)
    assert commits.offsets_of(1) == {QUEUE: [(10, 5, UNKNOWN, UNKNOWN), (30, DELETED, UNKNOWN, UNKNOWN)]}
    commits = after(commits, 20, 40, deleted=[])
    assert commits.offsets_of(1) == {}


def test_a_queue_that_is_deleted_with_its_group_and_by_itself_is_one_row_of_both() -> None:
    commits = Commits()
    for number in range(3):
        queue = queue_key("t", None, number)
        names = PackedNames.pack({1: NamedGroup("g", "kafka")}, {queue: ("t", None, number)})
        group_and_queue = np.array([1], np.uint64), np.array([queue], np.uint64)
        commits.add(ProgressColumns.of_commits(*group_and_queue, np.array([10]), np.array([5])), [names])
    deletions = deletions_of_rows(commits.table, {1: [40, 60]}, DeletedQueues(np.array([1, 1]), np.array([40, 50])))
    assert [(rows.tolist(), list(times)) for rows, times in deletions] == [([0, 2], [40, 60]), ([1], [40, 50, 60])]


@pytest.mark.parametrize("cuts", [(), (40,), (55,), (40, 55)])
def test_a_new_group_pays_nothing_for_the_commits_of_the_old_one(cuts: tuple[int, ...]) -> None:
    member = MemberInfo(member_id="m", subscriptions=("t",))
    reported = {"m": (QueueRef("t", 0),)}
    events = [
        count("t", 1, 5),
        committed(10, 5),
        ends("t", 30, q0=9),
        GroupDeleted(**of_group(50, "g")),
        GroupSnapshot(**of_group(60, "g"), generation=1, strategy="range", members=(member,), assignments=reported),
        clock(70),
    ]
    cluster, rows = Cluster(coordinator), []
    for start, end in pairwise((0, *cuts, 100)):
        rows += cluster.batch(*(event for event in events if start <= event.event_time - T0 < end), clock(end))
    [row] = [row for row in rows if isinstance(row, Rebalance)]
    assert row.waiting_messages is None


def test_the_state_drops_the_queues_once_the_span_of_the_deletion_is_over() -> None:
    commits = Commits()
    commit(commits, 10, 5)
    commits = after(commits, None, 60, deleted=[50])
    assert is_ended(commits.table).tolist() == [True]
    assert (commits.of(1), commits.offsets_of(1)) == ({}, {})
    commits = after(commits, 60, 120, deleted=[])
    assert len(commits.table) == 0


def test_a_new_group_of_that_name_begins_without_the_commits_of_the_old_one() -> None:
    commits = Commits()
    commit(commits, 10, 5)
    commit(commits, 20, 15)
    commits = after(commits, None, 60, deleted=[50])
    commit(commits, 70, 3)
    commits.add_ends(PackedEnds.pack(np.array([QUEUE], np.uint64), np.array([72]), np.array([9])))
    commits = after(commits, 60, 80, deleted=[])
    assert commits.offsets_of(1) == {QUEUE: [(70, 3, UNKNOWN, UNKNOWN), (72, UNKNOWN, 9, UNKNOWN)]}


def test_a_commit_that_is_read_again_does_not_bring_a_deleted_group_back() -> None:
    commits = Commits()
    commit(commits, 10, 5)
    commits = after(commits, None, 60, deleted=[50])
    commit(commits, 10, 5)
    commits = after(commits, 60, 80, deleted=[])
    assert commits.offsets_of(1) == {}


def test_a_group_that_changes_its_protocol_continues() -> None:
    record = {"protocol": "consumer", "record": "group"}
    events = [
        GroupDeleted(**of_group(10, "g")),
        GroupRecord(**of_group(10, "g"), **record, epoch=3),
        GroupRecord(**of_group(20, "g"), **record, deleted=True),
        GroupSnapshot(**of_group(20, "g"), generation=4),
        GroupDeleted(**of_group(40, "g")),
        GroupRecord(**of_group(30, "g"), **record, deleted=True),
    ]
    assert deletions_of(events) == [T0 + 30, T0 + 40]


def test_observations_as_new_as_the_deletion_stay() -> None:
    commits = Commits()
    commit(commits, 10, 5)
    commit(commits, 60, 8)
    commits = after(commits, None, 80, deleted=[])
    # The group's own input came later than its commits: it waited.
    commits = after(commits, 80, 90, deleted=[50])
    assert commits.offsets_of(1) == {QUEUE: [(60, 8, UNKNOWN, UNKNOWN)]}


@pytest.mark.parametrize("cuts", [(), (40,), (55,), (40, 55, 65)])
def test_a_commit_that_is_deleted_is_no_commit_until_the_next_one(cuts: tuple[int, ...]) -> None:
    config = core_config(shards=1, allowed_lateness_ms=0, queue_progress_ms=SPAN)
    events = [
        committed(10, 900),
        ends("t", 30, q0=1_000),
        CommitsDeleted(**of_group(50, "g"), queues=(QueueRef("t", 0),)),
        ends("t", 60, q0=5),
        committed(110, 2),
    ]
    cluster, rows = Cluster(coordinator, config), []
    for first, last in pairwise((0, *cuts, 300)):
        part = [event for event in events if first <= event.event_time - T0 < last]
        rows += cluster.batch(*part, clock(last))
    shown = [row.queues[0] for row in rows if isinstance(row, QueueProgress)]
    assert [(committed, end) for _, committed, _, end, *_ in shown] == [(None, None), (2, None)]


def test_commits_that_are_deleted_with_their_group_end_once() -> None:
    config = core_config(shards=1, allowed_lateness_ms=0, queue_progress_ms=SPAN)
    cluster = Cluster(coordinator, config)
    cluster.batch(committed(10, 5), clock(20))
    deletion = CommitsDeleted(**of_group(50, "g"), queues=(QueueRef("t", 0),))
    rows = cluster.batch(deletion, GroupDeleted(**of_group(50, "g")), clock(60))
    rows += cluster.batch(clock(150), ends("t", 140, q0=7)) + cluster.batch(clock(400))
    assert [row.queues[0][1] for row in rows if isinstance(row, QueueProgress)] == [None]
