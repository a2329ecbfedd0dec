"""Reports of members of a group of the model: the newest report of each member counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.model.allocation import Held, Queue, owners
from tests.model.group_rows import GroupRows
from tests.model.rows import Tables
from tests.model.times import Event
from udfs.strategies.registry import names


class Reports(GroupRows):
    """Reports of one group, and the assignment computed for it."""

    def __init__(self, cluster: str, name: str, system: str, tables: Tables) -> None:
        super().__init__(cluster, name, system, tables)
        self.held: Held = {}
        self.reported: Held | None = None  # the assignment of the current generation that the source reports
        self.row: dict[str, Any] | None = None
        self.first_applied: dict[str, int] = {}  # id -> when it was first applied
        self.newest_report: dict[str, int] = {}  # member -> the time of its newest report
        self.assigned_at = 0  # the time of the newest whole assignment
        self.early: list[Event] = []  # reports for generations to come, by time
        self.reporters: set[str] = set()  # members that have reported since the last generation
        self.pending: Any = None  # a rebalance that has begun
        self.reports: list[Event] = []  # reports of this time
        self.changed_at = 0
        self.is_compared = True  # every report so far is compared

    def is_repeat(self, event: Event, clock: int = 0) -> bool:
        name = event.get("event_id")
        if name is None:
            return False
        first, counts_from = self.first_applied.get(name), max(event["event_time"], clock)
        if first is not None and counts_from - first <= 600_000:
            return True
        self.first_applied[name] = counts_from
        return False

    def take_reports(self, at: int) -> None:
        """Take in members' reports of a time whose generation is known."""
        for event in self.reports:
            if not self.is_repeat(event):
                self.take_report(at, event)
        self.compare_new(at)

    def agreement_of_reports(self, at: int, status: str, mode: str) -> dict[str, Any]:
        """Return whether all members report the assignment of a generation before it is decided."""
        reported = {
            report["member_id"]: queues_of(report, self.system)
            for report in self.early
            if report["member_id"] in self.members
            and report["generation"] == self.generation
            and report["event_time"] >= at
        }
        is_whole = bool(self.members) and reported.keys() >= self.members.keys()
        if not is_whole or status != "completed" or mode != "clustering":
            return {"agrees": None, "queues_differing": None}
        differing = different(self.held, reported)
        return {"agrees": not differing, "queues_differing": differing}

    def forget_reports(self) -> None:
        """Forget the reports of a group that is deleted."""
        self.reported, self.newest_report, self.early, self.reporters, self.changed_at = None, {}, [], set(), 0
        self.assigned_at = 0

    def take_report(self, at: int, event: Event, is_listed: bool = False) -> None:
        number = event.get("generation")
        if number is None and self.pending is not None:  # the report may belong to the generation that has begun
            event = event | {"generation": (number := self.generation + 1)}
        if number is None or number == self.generation:
            if not self.hold(at, event) and not is_listed:
                self.tables.late[f"{self.cluster}/{self.name}"] += 1
        elif number > self.generation:
            self.early = sorted([*self.early, event], key=lambda report: report["event_time"])

    def begin_to_report(self, at: int, reporters: Iterable[str] = ()) -> None:
        """Let a generation begin: departed members hold nothing, and reports that came early count now."""
        self.reporters = set(reporters)
        if self.reported is not None:
            if any(queues for name, queues in self.reported.items() if name not in self.members):
                # when a past change is applied, spans end after newer reports
                self.changed_at = max(at, self.changed_at)
            self.reported = {name: queues for name, queues in self.reported.items() if name in self.members}
            self.open_spans(max(at, self.changed_at), "reported", self.reported)
        waiting = self.early
        self.early = [event for event in waiting if event["generation"] > self.generation]
        for event in waiting:
            if event["generation"] == self.generation:
                self.hold(max(at, event["event_time"]), event)

    def hold(self, at: int, event: Event) -> bool:
        """Take in a member's report; return whether it is its first since the last generation."""
        name, queues = event["member_id"], queues_of(event, self.system)
        if name not in self.members:
            return True
        if event["event_time"] < max(self.newest_report.get(name, 0), self.assigned_at):
            return False
        self.newest_report[name] = event["event_time"]
        if set(queues) != set((self.reported or {}).get(name, ())):
            at = self.changed_at = max(at, self.changed_at)
        self.reported = (self.reported or {}) | {name: queues}
        self.open_spans(at, "reported", self.reported)
        self.reporters.add(name)
        self.is_compared = False
        return True

    def compare_new(self, at: int) -> None:
        """Compare the reports of a time once all of them are there."""
        if not self.is_compared:
            self.compare(at)

    def compare(self, at: int) -> None:
        """Evaluate whether members hold their computed queues, once all of them have reported."""
        self.is_compared = True
        differing = self.differing()
        is_whole = bool(self.members) and self.reporters >= self.members.keys()
        if is_whole and differing is not None:
            self.finding(at, "expected_differs", differing > 0)

    def differing(self) -> int | None:
        """Return on how many queues reports and the computed assignment differ; None: that cannot be said."""
        row = self.row
        if row is None or self.reported is None or row["status"] != "completed" or not any(self.held.values()):
            return None
        if row["mode"] != "clustering" or not all(
            strategy in names() for strategy in (row["strategy"] or "").split(", ")
        ):
            return None
        return different(self.held, self.reported)


def queues_of(event: Event, system: str) -> list[Queue]:
    """Return the queues that an event reports."""
    return [
        (queue["topic"], None if system == "kafka" else queue.get("broker"), queue["queue_id"])
        for queue in event["queues"]
    ]


def under_former_ids(held: Held, renames: list[tuple[int, str, str]]) -> Held:
    """Return what members hold by the ids that they had before these took other ones."""
    held = dict(held)
    for _, former, name in reversed(renames):
        if name in held:
            held[former] = held.pop(name)
    return held


def former_ids(renames: list[tuple[int, str, str]]) -> dict[str, str]:
    """Return, by their current ids, the former ids of members that took new ones."""
    found: dict[str, str] = {}
    for _, former, name in renames:
        found[name] = found.pop(former, former)
    return found


def different(computed: Held, reported: Held) -> int:
    """Return on how many queues two assignments differ."""
    ours, theirs = owners(computed), owners(reported)
    return sum(ours.get(member_id, set()) != theirs.get(member_id, set()) for member_id in ours.keys() | theirs.keys())
