"""Observations of queues survive the way as they are, once each, with the names behind their keys."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

from udfs.model.observations import UNKNOWN
from udfs.packets.progress_columns import (
    NO_PROGRESS,
    NamedGroup,
    PackedEnds,
    PackedNames,
    PackedProgress,
    ProgressColumns,
    place_of,
)

OFFSETS = st.integers(UNKNOWN, 3)
ROWS = st.lists(st.tuples(*[st.integers(0, 2)] * 2, st.integers(0, 3), *[OFFSETS] * 3, st.booleans(), *[OFFSETS] * 2))
NO_NAMES = PackedNames.pack({}, {})


def columns(rows: list[tuple[int, ...]]) -> ProgressColumns:
    kinds = (np.uint64, np.uint64, *[np.int64] * 4, np.bool_, *[np.int64] * 2)
    return ProgressColumns._make(np.array([row[at] for row in rows], kind) for at, kind in enumerate(kinds))


def rows_of(found: ProgressColumns) -> list[tuple[int, ...]]:
    return list(zip(*(column.tolist() for column in found), strict=True))


@given(ROWS)
def test_the_greatest_values_with_the_same_timestamp_are_kept(rows: list[tuple[int, ...]]) -> None:
    expected: dict[tuple[int, ...], tuple[int, ...]] = {}
    for row in rows:
        expected[row[:3]] = tuple(map(max, row, expected.get(row[:3], row)))
    found = columns(rows).distinct()
    assert rows_of(found) == sorted(expected.values())
    packed = PackedProgress.pack(found, NO_NAMES)
    assert rows_of(packed.columns()) == rows_of(found)


@given(ROWS, ROWS)
def test_parts_are_joined_one_after_another(some: list[tuple[int, ...]], others: list[tuple[int, ...]]) -> None:
    assert rows_of(ProgressColumns.concat([columns(some), columns(others)])) == [*some, *others]
    assert rows_of(ProgressColumns.concat([NO_PROGRESS, columns(some)])) == some


def test_columns_without_values_take_no_bytes() -> None:
    commits = ProgressColumns.of_commits(*(np.arange(3).astype(kind) for kind in (np.uint64, np.uint64, np.int64)))
    packed = PackedProgress.pack(commits, NO_NAMES)
    assert (packed.offsets, packed.ends, packed.positions, packed.others) == (b"", b"", b"", b"")
    assert (packed.written_offsets, packed.written_times) == (b"", b"")


def test_names_come_back_by_their_keys() -> None:
    names = PackedNames.pack(
        {7: NamedGroup("g", "metaq"), 3: NamedGroup("h", "kafka")},
        {9: ("t", None, 4), 2: ("u", "b", 0), 5: ("t", None, 1)},
    )
    assert names.groups() == {3: ("h", "kafka"), 7: ("g", "metaq")}
    queues, numbers, ids, places = names.queues()
    assert [
        (key, *place_of(places[number]), queue_id)
        for key, number, queue_id in zip(queues.tolist(), numbers.tolist(), ids.tolist(), strict=True)
    ] == [(2, "u", "b", 0), (5, "t", None, 1), (9, "t", None, 4)]


def test_ends_come_back() -> None:
    packed = PackedEnds.pack(np.array([2**63], np.uint64), np.array([5], np.int64), np.array([2**40], np.int64))
    assert [column.tolist() for column in packed.columns()] == [[2**63], [5], [2**40], [UNKNOWN]]
    begun = PackedEnds.pack(*packed.columns()[:3], np.array([7], np.int64))
    assert begun.columns()[3].tolist() == [7]
