"""The files of a table that upkeep has to rewrite, by their listing."""

from __future__ import annotations

import pyarrow as pa
import pytest

from streaming.tables.file_listing import (
    files_to_compact,
    holds_times_before,
    is_out_of_order,
    newest_time,
    small_files,
)
from streaming.tables.schema import TIME

_BY = ("cluster", "group_id")


def listing(*spans: tuple[str | None, str | None]) -> pa.Table:
    """Return files of one cluster with the first and last group of each."""
    texts = pa.string()
    return pa.table(
        {
            "min.cluster": ["c"] * len(spans),
            "max.cluster": ["c"] * len(spans),
            "min.group_id": pa.array([low for low, _ in spans], texts),
            "max.group_id": pa.array([high for _, high in spans], texts),
        }
    )


@pytest.mark.parametrize(
    ("spans", "is_so"),
    [
        ([], False),
        ([("a", "z")], False),
        ([("a", "b"), ("b", "c"), ("c", "z")], False),
        ([("b", "c"), ("a", "b")], False),
        ([("a", "c"), ("b", "d")], True),
        ([("a", "z"), ("b", "c")], True),
        ([("a", "b"), (None, None)], False),
    ],
)
def test_files_that_overlap_are_out_of_order(spans: list[tuple[str | None, str | None]], is_so: bool) -> None:
    assert is_out_of_order(listing(*spans), _BY) is is_so


def test_files_without_statistics_are_left_as_they_are() -> None:
    assert not is_out_of_order(pa.table({"size_bytes": [1, 2]}), _BY)


def test_a_file_is_small_below_half_of_what_it_should_be() -> None:
    assert small_files(pa.table({"size_bytes": pa.array([49, 50, 51], pa.int64())}), 100) == 1
    assert small_files(pa.table({"size_bytes": pa.array([], pa.int64())}), 100) == 0


@pytest.mark.parametrize(
    ("sizes", "files"),
    [
        ([], 0),
        ([40], 0),
        ([40, 40], 2),
        ([60, 60], 0),
        ([10, 100, 90, 101], 2),
        ([30, 30, 30, 30, 60], 5),
        ([60, 20, 20], 3),
    ],
)
def test_files_are_joined_while_they_fit_into_one(sizes: list[int], files: int) -> None:
    assert files_to_compact(pa.table({"size_bytes": pa.array(sizes, pa.int64())}), 100) == files


@pytest.mark.parametrize(("first_us", "is_so"), [([1_999, None], True), ([2_000], False), ([None], False), ([], False)])
def test_old_times_show_in_the_statistics(first_us: list[int | None], is_so: bool) -> None:
    found = pa.table({"min.event_time": pa.array(first_us, TIME)})
    assert holds_times_before(found, "event_time", 2) is is_so
    assert not holds_times_before(pa.table({"size_bytes": [1]}), "event_time", 2)


def test_the_newest_time_is_that_of_all_files() -> None:
    times = pa.array([1_000_000, None, 5_000_000], pa.int64()).cast(TIME)
    assert newest_time(pa.table({"max.event_time": times}), "event_time") == 5_000
    assert newest_time(pa.table({"max.event_time": times.slice(1, 1)}), "event_time") is None
    assert newest_time(pa.table({"size_bytes": [1]}), "event_time") is None
