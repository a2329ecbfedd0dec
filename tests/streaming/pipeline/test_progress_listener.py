"""The listener keeps what the live view needs, and little else."""

from __future__ import annotations

import gc
import threading
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

from streaming.pipeline.progress_listener import ProgressListener
from streaming.pipeline.sink import Decided
from streaming.pipeline.totals import ClusterTotal, Totals
from streaming.tables import arrow_rows
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.schema import FINDINGS, GROUPS
from streaming.tables.writer import Mark
from streaming.terminal.live_view import KEPT_REBALANCES, LiveStatus


def rebalance(at: int, group: str) -> dict[str, Any]:
    return {
        "event_time": at,
        "cluster": "a",
        "group_id": group,
        "trigger": "member_joined",
        "triggers": [],
        "members_after": 1,
        "queues_moved": 0,
        "status": "completed",
    }


def a_group(group: str, members: int = 1) -> dict[str, Any]:
    return {"cluster": "a", "system": "kafka", "group_id": group, "members": members}


def commit(watch: ProgressListener, removed: list[dict[str, Any]], come: list[dict[str, Any]]) -> None:
    watch.replaced(GROUPS, arrow_rows.to_arrow(GROUPS, removed), arrow_rows.to_arrow(GROUPS, come))


def held(thing: object) -> int:
    """Count the objects that can be reached from this one, code aside."""
    observed: set[int] = set()
    waiting = [thing]
    while waiting:
        each = waiting.pop()
        if id(each) in observed or isinstance(each, type | ModuleType | FunctionType):
            continue
        observed.add(id(each))
        waiting += gc.get_referents(each)
    return len(observed)


def a_watch(root: Path, groups: int) -> ProgressListener:
    names = [f"g{number}" for number in range(groups)]
    DeltaRsTable(root, GROUPS).append(arrow_rows.to_arrow(GROUPS, [a_group(name) for name in names]), Mark("t", 0))
    open_ones = [{"finding_id": name, "cluster": "a", "opened_at": 1} for name in names]
    DeltaRsTable(root, FINDINGS).append(arrow_rows.to_arrow(FINDINGS, open_ones), Mark("t", 0))
    watch = ProgressListener(LiveStatus())
    watch.begin(root)
    for name in names:
        commit(watch, [a_group(name)], [a_group(name, 2)])
        watch.decided(Decided(1, [rebalance(len(name), name)], {"a": 7}, 0))
    return watch


def test_memory_does_not_grow_with_the_groups(tmp_path: Path) -> None:
    few = held(a_watch(tmp_path / "few", KEPT_REBALANCES + 1))
    assert held(a_watch(tmp_path / "many", 3 * KEPT_REBALANCES)) < 1.01 * few


def test_the_view_shows_what_the_tables_hold_and_what_batches_decided(tmp_path: Path) -> None:
    watch = a_watch(tmp_path, 3)
    status = watch._status
    (cluster,) = status.clusters
    assert (cluster.name, cluster.system, cluster.groups, cluster.members) == ("a", "kafka", 3, 6)
    assert (cluster.changed_ms, status.findings, status.rebalance_count) == (7, 3, 3)
    commit(watch, [a_group("g0", 2), a_group("g1", 2), a_group("g2", 2)], [])
    assert status.clusters == ()


def test_totals_of_two_concurrent_commits_are_shown_in_the_order_of_reading(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    status = LiveStatus()
    watch = ProgressListener(status)
    read, is_read, go_on = Totals.clusters.fget, threading.Event(), threading.Event()
    assert read is not None

    def slow(totals: Totals) -> dict[str, ClusterTotal]:
        found: dict[str, ClusterTotal] = read(totals)
        if not is_read.is_set():
            is_read.set()
            assert go_on.wait(timeout=300)
        return found

    monkeypatch.setattr(Totals, "clusters", property(slow))
    first = threading.Thread(target=commit, args=(watch, [], [a_group("g0")]))
    second = threading.Thread(target=commit, args=(watch, [], [a_group("g1")]))
    first.start()
    assert is_read.wait(timeout=300)
    second.start()
    # If both could update at once, the second would be done by now, and the first would overwrite it with an older
    # state.
    second.join(timeout=1)
    go_on.set()
    first.join()
    second.join()
    assert [cluster.groups for cluster in status.clusters] == [2]


def test_all_rebalances_of_a_large_batch_are_counted_and_the_newest_shown() -> None:
    status = LiveStatus()
    newest = [rebalance(at, f"g{at}") for at in range(1_000, 1_000 - KEPT_REBALANCES, -1)]
    ProgressListener(status).decided(Decided(1_000_000, newest, {"a": 1_000, "b": 3}, 4))
    assert (status.rebalance_count, status.rejected) == (1_000_000, 4)
    assert [shown.group_id for shown in status.rebalances] == [row["group_id"] for row in newest]
    assert status.delay_ms is not None


def test_progress_of_the_tables_is_shown_until_they_have_a_large_batch() -> None:
    status = LiveStatus()
    listener = ProgressListener(status)
    listener.followed(120_000, 390_000)
    assert status.following == "120,000 of 390,000 changes"
    listener.followed(390_000, 390_000)
    assert status.following == ""
