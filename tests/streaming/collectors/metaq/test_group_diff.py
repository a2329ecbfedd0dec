"""Two looks at a group -> what is told, and when it happened."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.collectors.metaq.departures import STOPPING_MS
from streaming.collectors.metaq.group_diff import MISSED_STANDS_MS, close_missed, diff_group, settle
from streaming.collectors.metaq.observed import (
    Folder,
    ObservedGroup,
    ObservedMember,
    ObservedOwner,
    ObservedOwners,
    ObservedShare,
    ObservedTopic,
    Violation,
)
from streaming.collectors.metaq.read_context import ReadContext
from streaming.collectors.metaq.remembered import ReportedGroupState, ReportedTopicState
from streaming.collectors.metaq.topic_diff import diff_topic
from streaming.collectors.metaq.zk_times import TransactionTimes
from tests.core_config import core_config
from udfs.ingest.parser import parse

T0 = 1_772_334_720_000
TOPICS = {
    "orders": ReportedTopicState(
        seen=ObservedTopic(Folder(1, 1), {"0-m": ObservedShare("0", 4, T0 - 5_000)}),
        queues=tuple(("0", number) for number in range(4)),
        at=T0 - 5_000,
    )
}


class Keeper:
    """A group's nodes, and the transactions that change them: dumber than ZooKeeper."""

    def __init__(self, group: str = "g") -> None:
        self.group, self.zxid, self.now = group, 100, T0
        self.ids: dict[str, ObservedMember] = {}
        self.ids_folder = Folder(0, 50)
        self.owners: dict[str, ObservedOwner] = {}
        self.owners_folder = Folder(0, 50)

    def passes(self, ms: int) -> None:
        self.now += ms

    def joins(self, name: str, topics: tuple[str, ...] = ("orders",)) -> None:
        self.zxid += 1
        self.ids[f"g_{name}"] = ObservedMember(topics, self.zxid, self.now, 7)
        self.ids_folder = Folder(self.ids_folder.cversion + 1, self.zxid)

    def leaves(self, name: str) -> None:
        self.zxid += 1
        del self.ids[f"g_{name}"]
        self.ids_folder = Folder(self.ids_folder.cversion + 1, self.zxid)

    def takes(self, name: str, *numbers: int) -> None:
        for number in numbers:
            self.zxid += 1
            self.owners[f"0-{number}"] = ObservedOwner(f"g_{name}", self.zxid, self.now)
            self.owners_folder = Folder(self.owners_folder.cversion + 1, self.zxid)

    def releases(self, *numbers: int) -> None:
        for number in numbers:
            self.zxid += 1
            del self.owners[f"0-{number}"]
            self.owners_folder = Folder(self.owners_folder.cversion + 1, self.zxid)

    def expires(self, *names: str) -> None:
        for name in names:
            self.leaves(name)
            mine = [key for key, owner in self.owners.items() if owner.member_id == f"g_{name}"]
            for key in mine:
                del self.owners[key]
            if mine:
                self.owners_folder = Folder(self.owners_folder.cversion + len(mine), self.zxid)

    def look(self) -> ObservedGroup:
        owners = {"orders": ObservedOwners(self.owners_folder, dict(self.owners))}
        return ObservedGroup(self.ids_folder, dict(self.ids), owners)


class Monitor:
    """Reads a keeper and collects what is told."""

    def __init__(self, keeper: Keeper) -> None:
        self.keeper = keeper
        self.told: ReportedGroupState | None = None
        self.times = TransactionTimes()
        self.heard: list[Any] = []

    def at(self, *, continuous: bool = True) -> ReadContext:
        now = self.keeper.now
        return ReadContext("c", noticed=now, at=now, continuous=continuous, settle_ms=1_000, times=self.times)

    def looks(self, *, continuous: bool = True) -> list[Any]:
        look = self.at(continuous=continuous)
        events, self.told = diff_group("g", self.told, self.keeper.look(), TOPICS, look)
        return self._hear(events)

    def settles(self) -> list[Any]:
        assert self.told is not None
        events, self.told = settle("g", self.told, TOPICS, self.at())
        return self._hear(events)

    def starts_again(self) -> None:
        assert self.told is not None
        self.told = msgspec.json.decode(msgspec.json.encode(self.told), type=ReportedGroupState)

    def _hear(self, events: list[Any]) -> list[Any]:
        for event in events:
            read = parse(msgspec.json.encode(event), event.event_time + 1_000, core_config())
            assert type(read) is type(event), read
        self.heard += events
        moments = [(one.event_time, type(one), getattr(one, "member_id", None)) for one in self.heard]
        assert len(set(moments)) == len(moments), "of two at one moment nobody knows which is the newer"
        assert [one.event_time for one in self.heard] == sorted(one.event_time for one in self.heard)
        return events


@pytest.fixture
def keeper() -> Keeper:
    return Keeper()


@pytest.fixture
def monitor(keeper: Keeper) -> Monitor:
    return Monitor(keeper)


def two_members(keeper: Keeper, monitor: Monitor) -> None:
    keeper.joins("a")
    keeper.joins("b")
    keeper.takes("a", 0, 1)
    keeper.takes("b", 2, 3)
    monitor.looks()
    keeper.passes(10_000)


def snapshots(events: list[Any]) -> list[Any]:
    return [event for event in events if type(event).__name__ == "GroupSnapshot"]


def departures(events: list[Any]) -> dict[str, str]:
    return {one.member_id: one.kind for event in snapshots(events) for one in event.departures or ()}


def test_joins_and_owners_are_told_with_their_own_times(keeper: Keeper, monitor: Monitor) -> None:
    monitor.looks()
    keeper.passes(100)
    keeper.joins("a")
    keeper.passes(40)
    keeper.joins("b")
    keeper.passes(7)
    keeper.takes("b", 3)
    keeper.passes(100)
    first, second, report = monitor.looks()
    assert (first.event_time, second.event_time) == (T0 + 100, T0 + 140)
    assert [[one.member_id for one in event.members] for event in (first, second)] == [["g_a"], ["g_a", "g_b"]]
    assert (report.member_id, report.event_time, report.queues[0].held_since) == ("g_b", T0 + 147, T0 + 147)
    assert monitor.looks() == []


def test_what_goes_in_one_transaction_has_expired(keeper: Keeper, monitor: Monitor) -> None:
    two_members(keeper, monitor)
    keeper.expires("b")
    assert departures(monitor.looks()) == {"g_b": "expired"}


def test_who_gives_back_first_and_goes_then_has_left(keeper: Keeper, monitor: Monitor) -> None:
    two_members(keeper, monitor)
    keeper.releases(2, 3)
    keeper.leaves("b")
    events = monitor.looks()
    assert departures(events) == {"g_b": "left"}
    assert "before" in snapshots(events)[0].departures[0].evidence


def test_the_same_is_seen_when_each_step_is(keeper: Keeper, monitor: Monitor) -> None:
    two_members(keeper, monitor)
    keeper.releases(2)
    assert [event.member_id for event in monitor.looks()] == ["g_b"]
    keeper.releases(3)
    monitor.looks()
    keeper.leaves("b")
    keeper.takes("a", 2)  # so that the folder's last change is another's
    monitor.starts_again()
    assert departures(monitor.looks()) == {"g_b": "left"}


def test_given_back_long_ago_says_nothing(keeper: Keeper, monitor: Monitor) -> None:
    two_members(keeper, monitor)
    keeper.releases(2, 3)
    monitor.looks()
    keeper.passes(STOPPING_MS + 1)
    keeper.leaves("b")
    assert departures(monitor.looks()) == {"g_b": "gone"}


def test_when_others_were_there_before_the_look_nothing_decides(keeper: Keeper, monitor: Monitor) -> None:
    two_members(keeper, monitor)
    keeper.expires("b")
    keeper.takes("a", 2, 3)
    assert departures(monitor.looks(continuous=False)) == {"g_b": "gone"}


def test_who_owned_nothing_is_gone(keeper: Keeper, monitor: Monitor) -> None:
    two_members(keeper, monitor)
    keeper.joins("c")
    monitor.looks()
    keeper.leaves("c")
    assert departures(monitor.looks()) == {"g_c": "gone"}


def test_a_removal_lies_between_the_transactions_around_it(keeper: Keeper, monitor: Monitor) -> None:
    two_members(keeper, monitor)
    keeper.expires("b")
    keeper.passes(30)
    keeper.takes("a", 2, 3)
    keeper.passes(3_600_000)
    event = snapshots(monitor.looks(continuous=False))[0]
    assert event.event_time == T0 + 10_030  # it was gone when the next took what it had


def test_who_came_back_under_the_same_id_went_in_between(keeper: Keeper, monitor: Monitor) -> None:
    two_members(keeper, monitor)
    keeper.expires("b")
    keeper.passes(500)
    keeper.joins("b")
    without, again = snapshots(monitor.looks())
    assert [one.member_id for one in without.members] == ["g_a"]
    assert [one.member_id for one in again.members] == ["g_a", "g_b"]
    assert (without.event_time, again.event_time) == (T0 + 10_499, T0 + 10_500)
    assert again.observations == ()


def test_changes_that_leave_no_trace_are_counted(keeper: Keeper, monitor: Monitor) -> None:
    two_members(keeper, monitor)
    keeper.joins("c")
    keeper.leaves("c")
    (event,) = monitor.looks()
    assert [(one.kind, one.detail.split(" ")[0]) for one in event.observations] == [("changes_missed", "2")]
    assert monitor.looks() == []
    keeper.passes(MISSED_STANDS_MS - 1)
    assert monitor.told is not None
    assert close_missed("g", monitor.told, monitor.at()) == ([], monitor.told)
    keeper.passes(1)
    (closing,), told = close_missed("g", monitor.told, monitor.at())
    assert closing.observations == ()
    assert told.missed_at is None


def test_owners_that_change_in_between_count_as_missed_only_after_an_outage(keeper: Keeper, monitor: Monitor) -> None:
    two_members(keeper, monitor)
    keeper.releases(3)
    keeper.takes("a", 3)
    keeper.releases(3)
    keeper.takes("b", 3)
    assert not snapshots(monitor.looks())
    keeper.releases(3)
    keeper.takes("a", 3)
    keeper.releases(3)
    keeper.takes("b", 3)
    (event,) = snapshots(monitor.looks(continuous=False))
    assert event.observations[0].detail.startswith("2 changes of the owners of orders")


def test_a_folder_that_was_made_anew_counts_nothing(keeper: Keeper, monitor: Monitor) -> None:
    two_members(keeper, monitor)
    keeper.ids_folder = Folder(1, keeper.zxid)
    assert monitor.looks() == []


def test_what_stands_is_told_of_all_members_at_one_moment(keeper: Keeper, monitor: Monitor) -> None:
    monitor.looks()
    two_members(keeper, monitor)
    settings, first, second = monitor.settles()
    assert (settings.strategy, settings.inferred) == ("metaq.default", True)
    assert settings.event_time == first.event_time == second.event_time == monitor.heard[-4].event_time + 1
    assert monitor.told is not None
    assert monitor.told.settled
    keeper.joins("c")
    monitor.looks()
    assert not monitor.told.settled


def test_a_strategy_is_not_inferred_while_a_queue_has_no_owner(keeper: Keeper, monitor: Monitor) -> None:
    monitor.looks()
    keeper.joins("a")
    keeper.joins("b")
    keeper.takes("a", 0, 1)
    keeper.takes("b", 2)
    monitor.looks()
    assert {type(event).__name__ for event in monitor.settles()} == {"AssignmentReported"}


def test_a_group_that_has_stood_for_long_is_told_with_its_strategy_at_once(keeper: Keeper, monitor: Monitor) -> None:
    keeper.joins("a")
    keeper.joins("b")
    keeper.takes("a", 0, 1)
    keeper.takes("b", 2, 3)
    keeper.passes(3_600_000)
    events = monitor.looks(continuous=False)
    kinds = [type(event).__name__ for event in events]
    assert kinds == ["GroupSettings", "GroupSnapshot", "AssignmentReported", "AssignmentReported"]
    assert {event.event_time for event in events} == {keeper.now}


def test_nodes_that_cannot_be_read_are_said_and_taken_back(keeper: Keeper, monitor: Monitor) -> None:
    two_members(keeper, monitor)
    look = msgspec.structs.replace(keeper.look(), faults=(Violation("/consumers/g/ids/x", "not_utf8", "?"),))
    events, told = diff_group("g", monitor.told, look, TOPICS, monitor.at())
    assert [one.kind for one in events[0].observations] == ["unreadable_nodes"]
    events, _ = diff_group("g", told, keeper.look(), TOPICS, monitor.at())
    assert events[0].observations == ()


def test_queues_that_are_gone_for_a_moment_are_not_told() -> None:
    def look(at: int) -> ReadContext:
        return ReadContext("c", noticed=at, at=at, continuous=True, settle_ms=1_000, times=TransactionTimes())

    def seen(count: int | None, since: int) -> ObservedTopic:
        return ObservedTopic(Folder(), {} if count is None else {"0-m": ObservedShare("0", count, since)})

    events, told = diff_topic("t", None, seen(5, T0 - 50), look(T0))
    assert [(event.event_time, len(event.queues or ())) for event in events] == [(T0, 5)]
    events, told = diff_topic("t", told, seen(None, 0), look(T0 + 100))
    assert events == []
    events, told = diff_topic("t", told, seen(7, T0 + 120), look(T0 + 130))
    assert [(event.event_time, len(event.queues or ())) for event in events] == [(T0 + 120, 7)]
    events, told = diff_topic("t", told, seen(None, 0), look(T0 + 5_000))
    events, told = diff_topic("t", told, seen(None, 0), look(T0 + 5_999))
    assert events == []
    events, told = diff_topic("t", told, seen(None, 0), look(T0 + 6_000))
    assert [(event.event_time, event.queue_count) for event in events] == [(T0 + 5_000, 0)]
    assert diff_topic("t", told, seen(None, 0), look(T0 + 9_000))[0] == []


@given(st.lists(st.tuples(st.integers(0, 6), st.sampled_from("abc"), st.integers(0, 3)), max_size=40))
def test_whatever_happens_the_last_words_are_the_truth(script: list[tuple[int, str, int]]) -> None:
    """Reads any moment, starts anew at any moment: what was told last of each member is what is."""
    keeper = Keeper()
    monitor = Monitor(keeper)
    monitor.looks()
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
            monitor.looks(continuous=number > 0)
        elif what == 5:
            monitor.starts_again()
        elif what == 6:
            monitor.settles()
    monitor.looks()
    monitor.settles()
    told = {one.member_id for one in snapshots(monitor.heard)[-1].members}
    assert told == set(keeper.ids)
    reports = {one.member_id: one for one in monitor.heard if type(one).__name__ == "AssignmentReported"}
    for name, held in keeper.look().held().items():
        assert {(one.topic, f"{one.broker}-{one.queue_id}") for one in reports[name].queues} == set(held)
    assert monitor.looks() == []
