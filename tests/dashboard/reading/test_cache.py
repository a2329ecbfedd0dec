"""Results are kept for a version, within a bound, and computed once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import deltalake
import psutil
import pyarrow as pa
import pytest

from dashboard.reading.cache import ResultCache


def test_a_result_is_computed_once_for_each_version() -> None:
    cache, computed = ResultCache(10_000), []

    def compute() -> bytes:
        computed.append(1)
        return b"%d" % len(computed)

    assert [cache.get("a", [version], compute) for version in (1, 1, 2, 2)] == [b"1", b"1", b"2", b"2"]


def test_the_least_recently_used_go_first_and_the_bound_holds() -> None:
    cache = ResultCache(10_000)
    for name in "abc":
        cache.get(name, [1], lambda: b"x" * 2_500)
    cache.get("a", [1], lambda: b"never")
    cache.get("d", [1], lambda: b"x" * 2_500)
    assert cache.held_bytes <= 10_000
    assert cache.get("a", [1], lambda: b"new") != b"new"
    assert cache.get("b", [1], lambda: b"new") == b"new"


def test_a_result_larger_than_the_bound_is_returned_and_not_kept_and_others_stay() -> None:
    cache = ResultCache(1_000)
    cache.get("b", [1], lambda: b"old")
    held = cache.held_bytes
    assert len(cache.get("a", [1], lambda: b"x" * 2_000)) == 2_000
    assert cache.held_bytes == held
    assert cache.get("b", [1], lambda: b"new") == b"old"


def test_tables_count_with_all_memory_that_they_keep(tmp_path: Path) -> None:
    columns = {f"c{number}": pa.array(range(200_000)) for number in range(12)}
    deltalake.write_deltalake(tmp_path, pa.Table.from_pydict(columns))
    cache, process, before = ResultCache(1 << 30), psutil.Process(), 0

    def rows_of(number: int) -> pa.Table:
        found = deltalake.DeltaTable(tmp_path).scan(predicate=f"c0 = {number}")
        return pa.RecordBatchReader.from_stream(found).read_all()

    for number in range(400):
        assert cache.get(number, [1], partial(rows_of, number))["c5"].to_pylist() == [number]
        if number == 50:
            before = process.memory_info().rss - cache.held_bytes
    # Without copies of their own, the small tables would keep more than 100 MB of larger ones in memory.
    assert process.memory_info().rss - cache.held_bytes < before + 60_000_000


def test_many_at_once_compute_it_once() -> None:
    cache, computed, enter = ResultCache(10_000), [], threading.Barrier(8)

    def compute_it(_: int) -> bytes:
        enter.wait(10)
        return cache.get("a", [1], lambda: computed.append(1) or b"x")

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(compute_it, range(8))) == {b"x"}
    assert len(computed) == 1


def test_a_failure_is_not_kept() -> None:
    cache = ResultCache(10_000)
    with pytest.raises(ZeroDivisionError):
        cache.get("a", [1], lambda: b"%d" % (1 // 0))
    assert cache.get("a", [1], lambda: b"well") == b"well"


def test_a_result_stays_until_a_table_changes_that_it_was_computed_from() -> None:
    cache, computed = ResultCache(10_000), []

    def compute() -> tuple[bytes, list[str]]:
        # It reads the second table only from the second time on, as a page does whose first table names a group later.
        computed.append(1)
        return b"%d" % len(computed), ["a", "b"][: len(computed)]

    versions = [{"a": 1, "b": 1}, {"a": 1, "b": 2}, {"a": 2, "b": 2}, {"a": 2, "b": 3}, {"a": 2, "b": 3}]
    assert [cache.get_as_read("k", version, compute) for version in versions] == [b"1", b"1", b"2", b"3", b"3"]


def test_while_a_result_is_computed_it_counts_for_no_other_version() -> None:
    cache = ResultCache(10_000)

    def slow() -> tuple[bytes, list[str]]:
        # Meanwhile a table changes, and another reader asks.
        assert cache.get_as_read("k", {"a": 1, "b": 2}, lambda: (b"new", ["b"])) == b"new"
        return b"old", ["b"]

    assert cache.get_as_read("k", {"a": 1, "b": 1}, slow) == b"old"
    assert cache.get_as_read("k", {"a": 1, "b": 2}, slow) == b"new"
