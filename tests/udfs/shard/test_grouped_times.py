"""One time for each (group, key). The model is a dict of dicts."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from udfs.shard.grouped_times import GroupedTimes

rows = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(-100, 100)), max_size=30)


def key(number: int) -> int:
    """Keys that differ in their highest bits, and keys that differ in their lowest."""
    return (number >> 1 << 62) | number & 1


def contents(table: GroupedTimes) -> dict[int, dict[int, int]]:
    return {
        int(group): dict(zip(*(column.tolist() for column in table.of(int(group))), strict=True))
        for group in table.groups
    }


@given(st.lists(rows, max_size=4))
def test_each_key_keeps_its_greatest_time(batches: list[list[tuple[int, int, int]]]) -> None:
    table = GroupedTimes()
    model: dict[int, dict[int, int]] = {}
    for batch in batches:
        for group, number, at in batch:
            remembered = model.setdefault(group, {})
            remembered[key(number)] = max(at, remembered.get(key(number), at))
        groups, numbers, times = ([row[column] for row in batch] for column in range(3))
        table.raise_to(
            np.asarray(groups, dtype=np.uint64),
            np.asarray([key(number) for number in numbers], dtype=np.uint64),
            np.asarray(times, dtype=np.int64),
        )
        table = GroupedTimes(table.encode())
        assert contents(table) == model


@given(rows, rows)
def test_replacing_a_groups_rows_leaves_the_others(
    first: list[tuple[int, int, int]], second: list[tuple[int, int, int]]
) -> None:
    table = GroupedTimes()
    model: dict[int, dict[int, int]] = {}
    for batch in (first, second):
        replaced: dict[int, dict[int, int]] = {}
        for group, number, at in batch:
            replaced.setdefault(group, {})[key(number)] = at
        table.replace(replaced)
        model |= replaced
        assert contents(table) == model


def test_a_group_without_rows_is_dropped() -> None:
    table = GroupedTimes()
    table.replace({1: {key(1): 10}, 2: {key(1): 20}})
    table.keep(table.times > 10)
    assert contents(table) == {2: {key(1): 20}}
    assert table.groups.tolist() == [2]
