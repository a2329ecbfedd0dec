"""Histories of queues are read when they are needed, and the newest of a time alone is what the whole history says."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from udfs.model.observations import UNKNOWN, Newest, newest_of
from udfs.packets.progress_columns import NamedGroup, PackedEnds, PackedNames, ProgressColumns
from udfs.shard.commits import Commits
from udfs.shard.queue_histories import QueueHistories
from udfs.shard.queue_table import QueueTable

QUEUES = [number << 24 for number in (7, 8)]  # hashes in practice
NAMES = PackedNames.pack(
    {1: NamedGroup("g1", "kafka")}, {queue: ("t", None, number) for number, queue in enumerate(QUEUES)}
)
OFFSETS = st.integers(UNKNOWN, 50)
TIMES = st.integers(0, 120)
ROWS = st.lists(st.tuples(st.sampled_from(QUEUES), TIMES, OFFSETS, st.just(UNKNOWN), st.just(UNKNOWN), st.just(True)))
# Some with ends and positions, and some that are no commits.
MIXED = st.lists(st.tuples(st.sampled_from(QUEUES), TIMES, OFFSETS, OFFSETS, OFFSETS, st.booleans()), max_size=6)


def columns(rows: list[tuple[int, int, int, int, int, bool]], scale: int = 1) -> ProgressColumns:
    queues, times, *offsets, commits = zip(*rows, strict=True)
    return ProgressColumns(
        np.ones(len(rows), np.uint64),
        np.asarray(queues, np.uint64),
        np.asarray(times, np.int64) * scale,
        *(np.asarray(column, np.int64) for column in offsets),
        np.asarray(commits, np.bool_),
        *[np.full(len(rows), UNKNOWN, np.int64)] * 2,
    )


@given(
    before=MIXED,
    many=ROWS,
    some=MIXED,
    ends=st.lists(st.tuples(TIMES, OFFSETS), max_size=2),
    until=TIMES,
    scale=st.sampled_from((1, 30, 700)),
)
def test_the_newest_of_a_time_is_that_of_the_whole_history(
    before: list[tuple[int, int, int, int, int, bool]],
    many: list[tuple[int, int, int, int, int, bool]],
    some: list[tuple[int, int, int, int, int, bool]],
    ends: list[tuple[int, int]],
    until: int,
    scale: int,
) -> None:
    commits = Commits()
    if before:
        commits.add(columns(before, scale), [NAMES])
        commits.make_due(60 * scale)
        commits.apply_due(span_ms=0, before=None, clock=60 * scale, flush=False)
        commits = Commits(*commits.encode(None))
    # Steady commits, so that many are due; then what comes at random.
    steady = [(QUEUES[0], at, at, UNKNOWN, UNKNOWN, True) for at in range(40, 110)]
    commits.add(columns([*steady, *many, *some], scale), [NAMES])
    for at, end in ends:
        commits.add_ends(PackedEnds.pack(np.array([QUEUES[0]], np.uint64), np.array([at * scale]), np.array([end])))
    commits.make_due(115 * scale)
    offsets = commits.offsets_of(1)
    for queue in QUEUES:
        assert offsets.newest(queue, until * scale) == newest_of(offsets.get(queue, ()), until * scale)
    assert offsets.newest(1, until * scale) == Newest()


@given(
    times=st.lists(st.integers(0, 9_000), min_size=1, max_size=20, unique=True),
    cuts=st.lists(st.integers(0, 9_000), max_size=4),
)
def test_earlier_commits_are_those_of_the_whole_history_however_it_is_cut(times: list[int], cuts: list[int]) -> None:
    rows = [(QUEUES[0], at, at, UNKNOWN, UNKNOWN, True) for at in times]
    commits = Commits()
    commits.add(columns(rows), [NAMES])
    for clock in [*sorted(cuts), 9_001]:
        commits.make_due(clock)
        commits.apply_due(span_ms=0, before=None, clock=clock, flush=False)
        commits = Commits(*commits.encode(None))
    whole = newest_of([(at, at, UNKNOWN, UNKNOWN) for at in sorted(times)], 9_001)
    assert commits.offsets_of(1).newest(QUEUES[0], 9_001) == whole


def test_a_history_is_read_once_and_only_when_it_is_needed() -> None:
    reads: list[int] = []

    def read(row: int) -> list[int]:
        reads.append(row)
        return [row]

    commits = Commits()
    commits.add(ProgressColumns.of_commits(*_two_queues()), [NAMES])
    table: QueueTable = commits.table
    histories = QueueHistories(table, slice(0, 2), np.array([True, True]), read)
    assert (list(histories), len(histories), reads) == (QUEUES, 2, [])
    assert (histories[QUEUES[1]], histories[QUEUES[1]], reads) == ([1], [1], [1])


def _two_queues() -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    return np.ones(2, np.uint64), np.asarray(QUEUES, np.uint64), np.zeros(2, np.int64)
