"""The table of queues: the same after it was written and read, and as small as it says."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from udfs.model.errors import StateDamagedError
from udfs.model.observations import UNKNOWN
from udfs.model.systems import BY_NUMBER
from udfs.packets.progress_columns import NamedGroup, PackedNames
from udfs.shard.queue_table import COLUMNS, QueueRow, QueueTable

TIME = st.integers(0, 2**41)
OFFSET = st.integers(0, 2**48)


@st.composite
def log_starts(draw: st.DrawFn) -> list[int]:
    known = draw(st.integers(0, 3))
    return [draw(kind) if place < known else UNKNOWN for place in range(3) for kind in (OFFSET, TIME)]


@st.composite
def queue_rows(draw: st.DrawFn) -> QueueRow:
    time, offset, former = draw(TIME), draw(st.one_of(st.just(UNKNOWN), OFFSET)), draw(st.booleans())
    committed, has_end, read = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    earlier, ended = draw(st.integers(0, 2)), draw(TIME)
    values = (
        time if committed else UNKNOWN,
        offset,
        draw(TIME) if committed and former else UNKNOWN,
        draw(OFFSET) if committed and former else UNKNOWN,
        draw(OFFSET) if has_end else UNKNOWN,
        ended if has_end else UNKNOWN,
        draw(OFFSET) if read else UNKNOWN,
        draw(TIME) if read else UNKNOWN,
        *(draw(TIME) if committed and earlier > place else UNKNOWN for place in range(2)),
        draw(st.integers(0, time)) if committed and former else UNKNOWN,
        *(draw(st.integers(0, ended)) if has_end and former else UNKNOWN for _ in range(2)),
        draw(st.integers(1, 2_700)) if draw(st.booleans()) else UNKNOWN,
        *draw(log_starts()),
        *draw(st.one_of(st.just((UNKNOWN,) * 3), st.tuples(OFFSET, TIME, TIME))),
    )
    name = draw(st.sampled_from([("t", None), ("t", "b"), ("u", None)]))
    return QueueRow(draw(st.integers(0, 2**64 - 1)), *name, draw(st.integers(0, 9)), True, draw(st.booleans()), values)


@given(st.dictionaries(st.integers(0, 2**64 - 1), st.lists(queue_rows(), min_size=1), max_size=4))
def test_rows_are_the_same_after_they_were_written_and_read(groups: dict[int, list[QueueRow]]) -> None:
    table = QueueTable()
    expected = {}
    for group, rows in groups.items():
        expected[group] = {row.queue: row for row in rows}
        table.put(group, NamedGroup(f"g{group}", BY_NUMBER[group % 3]), expected[group])
    read = QueueTable(table.encode_queues(), table.encode_offsets(), table.encode_motion(), table.encode_starts())
    for group, rows_of in expected.items():
        rows = read.rows_of(group)
        found = [read.row(number) for number in range(rows.start, rows.stop)]
        assert found == [rows_of[key] for key in sorted(rows_of)]
        assert read.names[group] == (f"g{group}", BY_NUMBER[group % 3])
    assert QueueTable().rows_of(1) == slice(0, 0)


def committed_row(queue: int, at: int) -> QueueRow:
    """Return a row that has only the time of the newest commit."""
    return QueueRow(queue, None, None, 0, True, False, (at, *([UNKNOWN] * (len(COLUMNS) - 1))))


def test_rows_are_found_and_others_are_not() -> None:
    table = QueueTable()
    groups, keys = np.array([5, 5, 3], np.uint64), np.array([1, 2, 1], np.uint64)
    assert table.expect(groups, keys, 10)
    assert not table.expect(groups, keys, 10)
    found = table.find(np.array([3, 5, 3, 4], np.uint64), np.array([1, 2, 2, 1], np.uint64)).tolist()
    assert found == [0, 2, -1, -1]
    assert not table.applied.any()


def test_there_are_no_more_rows_than_there_may_be() -> None:
    table = QueueTable()
    table.expect(np.array([1] * 5, np.uint64), np.arange(5).astype(np.uint64), 3)
    assert len(table) == 3
    assert not table.expect(np.array([1], np.uint64), np.array([9], np.uint64), 3)


def test_a_row_without_a_name_gets_it_with_the_first_that_has_it() -> None:
    table = QueueTable()
    table.put(1, None, {7: committed_row(7, 5), 8: committed_row(8, 6)})
    assert (table.place(0), table.names) == (None, {})
    assert table.name(
        PackedNames.pack(
            {1: NamedGroup("g", "metaq"), 2: NamedGroup("other", "kafka")}, {7: ("t", "b", 3), 9: ("u", None, 0)}
        )
    )
    assert (table.place(0), int(table.queue_ids[0]), table.place(1)) == (("t", "b"), 3, None)
    assert (table.names, table.place_names) == ({1: NamedGroup("g", "metaq")}, ["t\x00b"])


def test_a_damaged_table_is_refused() -> None:
    table = QueueTable()
    table.put(1, NamedGroup("g", "kafka"), {7: committed_row(7, 5), 8: committed_row(8, 6)})
    queues, offsets = table.encode_queues(), table.encode_offsets()
    with pytest.raises(StateDamagedError):
        QueueTable(queues, b"")
    with pytest.raises(StateDamagedError):
        QueueTable(b"", offsets)


def test_a_million_queues_take_no_more_bytes_than_is_written_down() -> None:
    # A tenth of a shard's limit: 1,000 groups of 50 queues that commit every 5 s and are read at 100 messages a second.
    rng, count = np.random.default_rng(7), 50_000
    table = QueueTable()
    groups = np.repeat(rng.integers(0, 2**63, count // 50).astype(np.uint64), 50)
    table.expect(groups, rng.integers(0, 2**63, count).astype(np.uint64), count)
    now = 1_700_000_000_000
    table.applied[:] = True
    table.places, table.queue_ids = rng.integers(0, 1000, count), rng.integers(0, 50, count)
    table.place_names = [f"topic-{number}\x00" for number in range(1000)]
    values = {name: np.full(count, UNKNOWN, np.int64) for name in COLUMNS}
    values["times"] = now - rng.integers(0, 5_000, count)
    values["former_times"] = values["times"] - 5_000 - rng.integers(0, 50, count)
    values["offsets"] = rng.integers(0, 2**33, count)
    values["former_offsets"] = values["offsets"] - rng.integers(400, 600, count)
    values["ends"] = values["offsets"] + rng.integers(0, 5_000, count)
    values["end_times"] = np.full(count, now - 3_000)
    values["earlier_times"] = values["former_times"]
    values["earliest_times"] = values["earlier_times"] - 5_000 - rng.integers(0, 50, count)
    # Two thirds have moved with their newest commit; messages wait in half of them.
    values["advanced_times"] = values["times"] - 5_000 * (rng.random(count) < 0.3)
    values["waiting_times"] = np.where(rng.random(count) < 0.5, values["end_times"], UNKNOWN)
    values["grown_times"] = values["end_times"]
    values["usual_waits"] = rng.integers(1, 60, count)
    table.columns = values
    named, changing = len(table.encode_queues()) / count, len(table.encode_offsets()) / count
    moving = len(table.encode_motion()) / count
    # Only what changes is written anew in each batch.
    assert named < 12.5
    assert changing < 15.5
    assert moving < 4.5
