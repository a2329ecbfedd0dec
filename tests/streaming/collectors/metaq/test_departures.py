"""Departures of consumers inferred from ZooKeeper transactions."""

from __future__ import annotations

from streaming.collectors.metaq.departures import STOPPING_MS
from tests.streaming.collectors.metaq.keeper import Keeper, Monitor, departures, snapshots, two_members


def test_nodes_deleted_in_one_transaction_mean_an_expired_session(keeper: Keeper, monitor: Monitor) -> None:
    two_members(keeper, monitor)
    keeper.expires("b")
    assert departures(monitor.reads()) == {"g_b": "expired"}


def test_a_member_that_releases_its_partitions_first_has_left(keeper: Keeper, monitor: Monitor) -> None:
    two_members(keeper, monitor)
    keeper.releases(2, 3)
    keeper.leaves("b")
    events = monitor.reads()
    assert departures(events) == {"g_b": "left"}
    assert "before" in snapshots(events)[0].departures[0].evidence


def test_a_leave_is_recognized_even_if_each_step_is_read(keeper: Keeper, monitor: Monitor) -> None:
    two_members(keeper, monitor)
    keeper.releases(2)
    assert [event.member_id for event in monitor.reads()] == ["g_b"]
    keeper.releases(3)
    monitor.reads()
    keeper.leaves("b")
    keeper.takes("a", 2)  # so that the folder's last change is another's
    monitor.restarts()
    assert departures(monitor.reads()) == {"g_b": "left"}


def test_partitions_released_long_ago_are_no_evidence(keeper: Keeper, monitor: Monitor) -> None:
    two_members(keeper, monitor)
    keeper.releases(2, 3)
    monitor.reads()
    keeper.passes(STOPPING_MS + 1)
    keeper.leaves("b")
    assert departures(monitor.reads()) == {"g_b": "gone"}


def test_nothing_is_inferred_after_changes_by_other_clients(keeper: Keeper, monitor: Monitor) -> None:
    two_members(keeper, monitor)
    keeper.expires("b")
    keeper.takes("a", 2, 3)
    assert departures(monitor.reads(continuous=False)) == {"g_b": "gone"}


def test_a_member_that_owned_nothing_departs_without_evidence(keeper: Keeper, monitor: Monitor) -> None:
    two_members(keeper, monitor)
    keeper.joins("c")
    monitor.reads()
    keeper.leaves("c")
    assert departures(monitor.reads()) == {"g_c": "gone"}
