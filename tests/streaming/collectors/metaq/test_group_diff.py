"""Two reads of a group give events with their times."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from streaming.collectors.metaq.group_diff import MISSED_OPEN_MS, close_missed, diff_group
from streaming.collectors.metaq.observed import (
    Folder,
    Violation,
)
from tests.streaming.collectors.metaq.keeper import TOPICS, Keeper, Monitor, snapshots, two_members

T0 = 1_772_334_720_000


def test_joins_and_owners_are_reported_with_their_own_times(keeper: Keeper, monitor: Monitor) -> None:
    monitor.reads()
    keeper.passes(100)
    keeper.joins("a")
    keeper.passes(40)
    keeper.joins("b")
    keeper.passes(7)
    keeper.takes("b", 3)
    keeper.passes(100)
    first, second, report = monitor.reads()
    assert (first.event_time, second.event_time) == (T0 + 100, T0 + 140)
    assert [[member.member_id for member in event.members] for event in (first, second)] == [["g_a"], ["g_a", "g_b"]]
    assert (report.member_id, report.event_time, report.queues[0].held_since) == ("g_b", T0 + 147, T0 + 147)
    assert monitor.reads() == []


def test_a_removal_is_dated_between_the_transactions_around_it(keeper: Keeper, monitor: Monitor) -> None:
    two_members(keeper, monitor)
    keeper.expires("b")
    keeper.passes(30)
    keeper.takes("a", 2, 3)
    keeper.passes(3_600_000)
    event = snapshots(monitor.reads(continuous=False))[0]
    assert event.event_time == T0 + 10_030  # it had departed before the next member took its queues


def test_a_member_that_came_back_under_its_id_had_departed_in_between(keeper: Keeper, monitor: Monitor) -> None:
    two_members(keeper, monitor)
    keeper.expires("b")
    keeper.passes(500)
    keeper.joins("b")
    without, again = snapshots(monitor.reads())
    assert [member.member_id for member in without.members] == ["g_a"]
    assert [member.member_id for member in again.members] == ["g_a", "g_b"]
    assert (without.event_time, again.event_time) == (T0 + 10_499, T0 + 10_500)
    assert again.observations == ()


def test_changes_that_leave_no_trace_are_counted(keeper: Keeper, monitor: Monitor) -> None:
    two_members(keeper, monitor)
    keeper.joins("c")
    keeper.leaves("c")
    (event,) = monitor.reads()
    assert [(observation.kind, observation.detail.split(" ")[0]) for observation in event.observations] == [
        ("changes_missed", "2")
    ]
    assert monitor.reads() == []
    keeper.passes(MISSED_OPEN_MS - 1)
    assert monitor.state is not None
    assert close_missed("g", monitor.state, monitor.at()) == ([], monitor.state)
    keeper.passes(1)
    (closing,), reported = close_missed("g", monitor.state, monitor.at())
    assert closing.observations == ()
    assert reported.missed_at is None


def test_owners_that_change_in_between_count_as_missed_only_after_an_outage(keeper: Keeper, monitor: Monitor) -> None:
    two_members(keeper, monitor)
    keeper.releases(3)
    keeper.takes("a", 3)
    keeper.releases(3)
    keeper.takes("b", 3)
    assert not snapshots(monitor.reads())
    keeper.releases(3)
    keeper.takes("a", 3)
    keeper.releases(3)
    keeper.takes("b", 3)
    (event,) = snapshots(monitor.reads(continuous=False))
    assert event.observations[0].detail.startswith("2 changes of the owners of orders")


def test_a_folder_that_was_made_anew_counts_nothing(keeper: Keeper, monitor: Monitor) -> None:
    two_members(keeper, monitor)
    keeper.ids_folder = Folder(1, keeper.zxid)
    assert monitor.reads() == []


def test_a_settled_state_is_reported_of_all_members_at_one_time(keeper: Keeper, monitor: Monitor) -> None:
    monitor.reads()
    two_members(keeper, monitor)
    settings, first, second = monitor.settles()
    assert (settings.strategy, settings.inferred) == ("metaq.default", True)
    assert settings.event_time == first.event_time == second.event_time == monitor.reported[-4].event_time + 1
    assert monitor.state is not None
    assert monitor.state.settled
    keeper.joins("c")
    monitor.reads()
    assert not monitor.state.settled


def test_a_strategy_is_not_inferred_while_a_queue_has_no_owner(keeper: Keeper, monitor: Monitor) -> None:
    monitor.reads()
    keeper.joins("a")
    keeper.joins("b")
    keeper.takes("a", 0, 1)
    keeper.takes("b", 2)
    monitor.reads()
    assert {type(event).__name__ for event in monitor.settles()} == {"AssignmentReported"}


def test_a_group_unchanged_for_long_is_reported_with_its_strategy_at_once(keeper: Keeper, monitor: Monitor) -> None:
    keeper.joins("a")
    keeper.joins("b")
    keeper.takes("a", 0, 1)
    keeper.takes("b", 2, 3)
    keeper.passes(3_600_000)
    events = monitor.reads(continuous=False)
    kinds = [type(event).__name__ for event in events]
    assert kinds == ["GroupSettings", "GroupSnapshot", "AssignmentReported", "AssignmentReported"]
    assert {event.event_time for event in events} == {keeper.now}


def test_unreadable_nodes_are_observed_and_their_end_too(keeper: Keeper, monitor: Monitor) -> None:
    two_members(keeper, monitor)
    found = msgspec.structs.replace(keeper.read(), violations=(Violation("/consumers/g/ids/x", "not_utf8", "?"),))
    events, reported = diff_group("g", monitor.state, found, TOPICS, monitor.at())
    assert [observation.kind for observation in events[0].observations] == ["unreadable_nodes"]
    events, _ = diff_group("g", reported, keeper.read(), TOPICS, monitor.at())
    assert events[0].observations == ()


@given(st.lists(st.tuples(st.integers(0, 6), st.sampled_from("abc"), st.integers(0, 3)), max_size=40))
def test_the_last_report_always_equals_the_real_state(script: list[tuple[int, str, int]]) -> None:
    """Reads and restarts at any time: the last report of each member is its present state."""
    keeper = Keeper()
    monitor = Monitor(keeper)
    monitor.reads()
    for what, name, number in script:
        keeper.passes(number * 300)
        is_in = f"g_{name}" in keeper.ids
        if what == 0 and not is_in:
            keeper.joins(name)
        elif what == 1 and is_in:
            keeper.expires(name)
        elif what == 2 and is_in and f"0-{number}" not in keeper.owners:
            keeper.takes(name, number)
        elif what == 3 and f"0-{number}" in keeper.owners:
            keeper.releases(number)
        elif what == 4:
            monitor.reads(continuous=number > 0)
        elif what == 5:
            monitor.restarts()
        elif what == 6:
            monitor.settles()
    monitor.reads()
    monitor.settles()
    members = {member.member_id for member in snapshots(monitor.reported)[-1].members}
    assert members == set(keeper.ids)
    reports = {event.member_id: event for event in monitor.reported if type(event).__name__ == "AssignmentReported"}
    for name, held in keeper.read().held().items():
        assert {(queue.topic, f"{queue.broker}-{queue.queue_id}") for queue in reports[name].queues} == set(held)
    assert monitor.reads() == []
