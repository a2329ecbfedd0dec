"""A group's nodes that the test changes, and a monitor that reads them."""

from __future__ import annotations

from typing import Any

import msgspec

from streaming.collectors.metaq.group_diff import diff_group, report_settled
from streaming.collectors.metaq.observed import (
    Folder,
    ZkGroup,
    ZkMember,
    ZkOwner,
    ZkOwners,
    ZkShare,
    ZkTopic,
)
from streaming.collectors.metaq.read_context import ReadContext
from streaming.collectors.metaq.reported_state import ReportedGroupState, ReportedTopicState
from streaming.collectors.metaq.zk_times import TransactionTimes
from tests.core_config import core_config
from udfs.ingest.parser import parse

T0 = 1_772_334_720_000


TOPICS = {
    "orders": ReportedTopicState(
        observed=ZkTopic(Folder(1, 1), {"0-m": ZkShare("0", 4, T0 - 5_000)}),
        queues=tuple(("0", number) for number in range(4)),
        at=T0 - 5_000,
    )
}


class Keeper:
    """A group's nodes, and the transactions that change them; simpler than ZooKeeper."""

    def __init__(self, group: str = "g") -> None:
        self.group, self.zxid, self.now = group, 100, T0
        self.ids: dict[str, ZkMember] = {}
        self.ids_folder = Folder(0, 50)
        self.owners: dict[str, ZkOwner] = {}
        self.owners_folder = Folder(0, 50)

    def passes(self, ms: int) -> None:
        self.now += ms

    def joins(self, name: str, topics: tuple[str, ...] = ("orders",)) -> None:
        self.zxid += 1
        self.ids[f"g_{name}"] = ZkMember(topics, self.zxid, self.now, 7)
        self.ids_folder = Folder(self.ids_folder.cversion + 1, self.zxid)

    def leaves(self, name: str) -> None:
        self.zxid += 1
        del self.ids[f"g_{name}"]
        self.ids_folder = Folder(self.ids_folder.cversion + 1, self.zxid)

    def takes(self, name: str, *numbers: int) -> None:
        for number in numbers:
            self.zxid += 1
            self.owners[f"0-{number}"] = ZkOwner(f"g_{name}", self.zxid, self.now)
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

    def read(self) -> ZkGroup:
        owners = {"orders": ZkOwners(self.owners_folder, dict(self.owners))}
        return ZkGroup(self.ids_folder, dict(self.ids), owners)


class Monitor:
    """Reads a keeper and collects what is reported."""

    def __init__(self, keeper: Keeper) -> None:
        self.keeper = keeper
        self.state: ReportedGroupState | None = None
        self.times = TransactionTimes()
        self.reported: list[Any] = []

    def at(self, *, continuous: bool = True) -> ReadContext:
        now = self.keeper.now
        return ReadContext("c", noticed=now, at=now, continuous=continuous, settle_ms=1_000, times=self.times)

    def reads(self, *, continuous: bool = True) -> list[Any]:
        context = self.at(continuous=continuous)
        events, self.state = diff_group("g", self.state, self.keeper.read(), TOPICS, context)
        return self._report(events)

    def settles(self) -> list[Any]:
        assert self.state is not None
        events, self.state = report_settled("g", self.state, TOPICS, self.at())
        return self._report(events)

    def restarts(self) -> None:
        assert self.state is not None
        self.state = msgspec.json.decode(msgspec.json.encode(self.state), type=ReportedGroupState)

    def _report(self, events: list[Any]) -> list[Any]:
        for event in events:
            read = parse(msgspec.json.encode(event), event.event_time + 1_000, core_config())
            assert type(read) is type(event), read
        self.reported += events
        times = [
            (reported.event_time, type(reported), getattr(reported, "member_id", None)) for reported in self.reported
        ]
        assert len(set(times)) == len(times), "two at one time have no order"
        assert [reported.event_time for reported in self.reported] == sorted(
            reported.event_time for reported in self.reported
        )
        return events


def two_members(keeper: Keeper, monitor: Monitor) -> None:
    keeper.joins("a")
    keeper.joins("b")
    keeper.takes("a", 0, 1)
    keeper.takes("b", 2, 3)
    monitor.reads()
    keeper.passes(10_000)


def snapshots(events: list[Any]) -> list[Any]:
    return [event for event in events if type(event).__name__ == "GroupSnapshot"]


def departures(events: list[Any]) -> dict[str, str]:
    return {departure.member_id: departure.kind for event in snapshots(events) for departure in event.departures or ()}
