"""What a span of event time shows of queues depends on the events alone, not on how they were cut into batches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

import hypothesis.strategies as st
import numpy as np
from hypothesis import example, given

from udfs.model.observations import DELETED, UNKNOWN
from udfs.packets.progress_columns import NamedGroup, PackedEnds, PackedNames, ProgressColumns
from udfs.shard.commits import Commits

SPAN = 10
NAMES = PackedNames.pack(
    {1: NamedGroup("g1", "kafka"), 2: NamedGroup("g2", "kafka")},
    {0: ("t", None, 0), 1: ("t", None, 1), 2: ("u", "b", 0)},
)


class Observed(NamedTuple):
    """One event: an end of a queue, and where its log begins, where the group is 0, else what a group has reached."""

    at: int
    group: int
    queue: int
    offset: int = UNKNOWN
    end: int = UNKNOWN
    is_commit: bool = True
    start: int = UNKNOWN
    written: int = UNKNOWN  # a message, and when it was written
    written_at: int = UNKNOWN

    @property
    def is_note(self) -> bool:
        """Return whether it says nothing of the group."""
        return not self.is_commit and self.offset == self.end == UNKNOWN != self.written


Row = tuple[int, ...]  # group, queue, span, then as SpanRows


Deletion = tuple[int, int] | tuple[int, int, int]  # time, group; and the queue, where a commit is deleted by itself


def batches(
    events: Iterable[Observed], clocks: list[int], deletions: Sequence[Deletion] = (), *, flush: bool = False
) -> list[Row]:
    """Feed events to the state, each in the batch before the clock passes it; return the rows of all spans."""
    events, rows = list(events), []
    by_itself: list[ProgressColumns] = []
    state: tuple[object, ...] = (b"", b"", b"", b"")
    before = None
    for number, clock in enumerate(clocks):
        commits = Commits(*state)  # type: ignore[arg-type]
        since = before or 0
        mine = [event for event in events if since <= event.at < clock]
        for at, group, *queue in deletions:
            if queue and since <= at < clock:
                group_and_queue = np.array([group], np.uint64), np.array(queue, np.uint64)
                by_itself.append(ProgressColumns.of_commits(*group_and_queue, np.array([at]), np.array([DELETED])))
        reported = [event for event in mine if event.group]
        if reported:
            columns = ProgressColumns(
                np.array([event.group for event in reported], np.uint64),
                np.array([event.queue for event in reported], np.uint64),
                np.array([event.at for event in reported], np.int64),
                np.array([event.offset for event in reported], np.int64),
                np.array([event.end for event in reported], np.int64),
                np.full(len(reported), UNKNOWN, np.int64),
                np.array([event.is_commit for event in reported], np.bool_),
                np.array([event.written for event in reported], np.int64),
                np.array([event.written_at for event in reported], np.int64),
            )
            commits.add(columns, [NAMES])
        ends = [event for event in mine if not event.group]
        if ends:
            commits.add_ends(
                PackedEnds.pack(
                    np.array([event.queue for event in ends], np.uint64),
                    np.array([event.at for event in ends]),
                    np.array([event.end for event in ends]),
                    np.array([event.start for event in ends]),
                )
            )
        for columns in by_itself:
            commits.add(columns)
        by_itself.clear()
        commits.make_due(clock)
        for group in (1, 2):
            commits.note_deletions(
                group,
                sorted(at for at, deleted, *own in deletions if deleted == group and not own and since <= at < clock),
            )
        last = number == len(clocks) - 1
        found = commits.apply_due(span_ms=SPAN, before=before, clock=clock, flush=flush and last)
        if found is not None:
            table = commits.table
            groups = table.groups[table.row_groups()]
            for row, *others in zip(*(column.tolist() for column in found), strict=True):
                rows.append((int(groups[row]), int(table.keys[row]), *others))
        state, before = commits.encode(None), clock
    return sorted(rows)  # type: ignore[arg-type]


def one_by_one(events: Iterable[Observed], clock: int, deletions: Iterable[Deletion] = ()) -> list[Row]:
    """Return the rows of all spans that end up to the clock, event by event."""
    remembered: dict[tuple[int, int], list[int]] = {}  # commit, end (time, offset); start; message, its time
    rows: dict[tuple[int, int, int], list[int]] = {}
    merged: dict[tuple[int, int, int], Observed] = {}
    for event in events:
        key = (event.at, event.group, event.queue)
        other = merged.get(key, event)
        is_commit = event.is_commit or other.is_commit
        greatest = (max(values) for values in zip(event[3:5], other[3:5], strict=True))
        merged[key] = Observed(*key, *greatest, is_commit, *map(max, event[6:], other[6:]))
    to_come = sorted(deletions)

    def delete_up_to(time: int) -> None:
        while to_come and to_come[0][0] <= time:
            at, group, *queue = to_come.pop(0)
            for key in [key for key in remembered if key[0] == group and (not queue or key[1] == queue[0])]:
                del remembered[key]
                rows[*key, at // SPAN] = [at, *[UNKNOWN] * 6]

    for at, of_time in groupby(
        sorted(merged.values(), key=lambda event: (event.at, event.end)), key=lambda event: event.at
    ):
        delete_up_to(at)
        before: dict[tuple[int, int], list[int]] = {}
        together = list(of_time)
        for event in together:
            if event.group and not event.is_note:
                remembered.setdefault((event.group, event.queue), [UNKNOWN] * 7)
        for event in together:
            if event.group:
                touched = [key for key in [(event.group, event.queue)] if key in remembered]
            else:
                touched = [key for key in remembered if key[1] == event.queue]
            for key in touched:
                now = remembered[key]
                before.setdefault(key, list(now))
                if event.group and event.is_commit:
                    now[:2] = event.at, event.offset
                elif event.group and now[0] == UNKNOWN and event.offset != UNKNOWN:
                    now[1] = event.offset
                if event.end != UNKNOWN:
                    now[2:4] = event.at, event.end
                if not event.group and event.start != UNKNOWN:
                    now[4] = event.start
                if event.written != UNKNOWN:
                    now[5:] = event.written, event.written_at
        # What cancels out within one time is no change.
        for key, former in before.items():
            now = remembered[key]
            if (now[1], now[3]) != (former[1], former[3]) or (*key, at // SPAN) in rows:
                rows[*key, at // SPAN] = list(now)
    delete_up_to(clock - 1)
    return sorted((*key, *row) for key, row in rows.items() if (key[2] + 1) * SPAN <= clock)


EVENTS = st.lists(
    st.one_of(
        st.builds(
            lambda *fields: Observed(*fields),  # without those that have a default
            st.integers(0, 45),
            st.integers(1, 2),
            st.integers(0, 2),
            st.integers(UNKNOWN, 3),
            st.integers(UNKNOWN, 4),
            st.booleans(),
        ),
        st.builds(
            lambda at, group, queue, offset, is_commit, written: Observed(
                at, group, queue, offset, is_commit=is_commit, written=written, written_at=7 * written
            ),
            st.integers(0, 45),
            st.integers(1, 2),
            st.integers(0, 2),
            st.sampled_from((UNKNOWN, UNKNOWN, 2)),
            st.booleans(),
            st.integers(0, 3),
        ),
        st.builds(
            lambda at, queue, end, start: Observed(at, 0, queue, end=end, start=start),
            st.integers(0, 45),
            st.integers(0, 2),
            st.integers(0, 4),
            st.integers(UNKNOWN, 3),
        ),
    ),
    max_size=25,
)


_TIME_AND_GROUP = st.integers(0, 45), st.integers(1, 2)
DELETIONS = st.lists(
    st.one_of(st.tuples(*_TIME_AND_GROUP), st.tuples(*_TIME_AND_GROUP, st.integers(0, 2))), max_size=4, unique=True
)


@given(EVENTS, st.lists(st.integers(1, 59), max_size=5, unique=True), DELETIONS)
@example([Observed(0, 1, 0, 2, is_commit=False), Observed(1, 1, 0), Observed(2, 1, 0, 3)], [2], [])
@example([Observed(12, 0, 0, end=5), Observed(13, 1, 0, 3), Observed(14, 0, 0, end=6)], [13, 14], [])
@example([Observed(3, 1, 0, 3, 4), Observed(3, 0, 0, end=2)], [], [])
@example([Observed(5, 1, 0, 3, 1), Observed(11, 0, 0, end=0), Observed(11, 0, 0, end=1)], [], [])
@example([Observed(0, 1, 0, 0, 1), Observed(10, 1, 0, 0, 1, False), Observed(10, 0, 0, end=0)], [], [])
@example([Observed(1, 1, 0, 5), Observed(14, 0, 0, end=9), Observed(25, 0, 0, end=10)], [13], [(12, 1)])
@example([Observed(1, 1, 0, 5), Observed(4, 1, 0, 6), Observed(25, 1, 0, 1)], [3], [(3, 1), (7, 1)])
def test_spans_show_the_same_however_events_are_cut(
    events: list[Observed], clocks: list[int], deletions: list[Deletion]
) -> None:
    expected = one_by_one(events, 60, deletions)
    assert batches(events, [60], deletions) == expected
    assert batches(events, [*sorted(clocks), 60], deletions) == expected


def test_a_queue_has_a_row_for_each_span_in_which_it_moved() -> None:
    events = [
        Observed(1, 1, 0, 5),
        Observed(4, 1, 0, 6),
        Observed(7, 0, 0, end=9, start=2),
        Observed(14, 1, 0, 6),
        Observed(17, 0, 0, end=9, start=3),  # it is no move
        Observed(25, 1, 0, 8),
    ]
    assert batches(events, [30]) == [(1, 0, 0, 4, 6, 7, 9, 2, -1, -1), (1, 0, 2, 25, 8, 17, 9, 3, -1, -1)]
    assert batches(events, [29]) == [(1, 0, 0, 4, 6, 7, 9, 2, -1, -1)]
    # When a message was written is no move either, and nothing of a queue of which nothing else is known.
    note = Observed(5, 1, 0, is_commit=False, written=6, written_at=3)
    assert batches([*events, note], [6, 29]) == [(1, 0, 0, 4, 6, 7, 9, 2, 6, 3)]
    assert batches([*events, note._replace(at=0)], [6, 29]) == [(1, 0, 0, 4, 6, 7, 9, 2, -1, -1)]


def test_a_flush_shows_the_open_span_up_to_then() -> None:
    assert batches([Observed(1, 1, 0, 5), Observed(12, 1, 0, 6)], [13], flush=True) == [
        (1, 0, 0, 1, 5, *[UNKNOWN] * 5),
        (1, 0, 1, 12, 6, *[UNKNOWN] * 5),
    ]


def test_late_observations_change_nothing_newer_and_reopen_no_span() -> None:
    commits = Commits()

    def commit(at: int, offset: int) -> None:
        numbers = np.array([1], np.uint64)
        commits.add(ProgressColumns.of_commits(numbers, numbers, np.array([at]), np.array([offset])), [NAMES])

    commit(5, 50)
    commits.make_due(12)
    commits.apply_due(span_ms=SPAN, before=None, clock=12, flush=False)
    commits = Commits(*commits.encode(None))
    commit(4, 40)
    commit(7, 70)  # older than the clock, newer than what is known
    commits.make_due(20)
    found = commits.apply_due(span_ms=SPAN, before=12, clock=20, flush=False)
    assert found is not None
    assert [column.tolist() for column in found[1:4]] == [[1], [7], [70]]
