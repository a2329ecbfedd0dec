"""Rows of a group of the new protocol in the model: of its epochs, of its members, and the group as it is now."""

from __future__ import annotations

from typing import Any

from tests.model.allocation import Held, compared, owners
from tests.model.group import ORDER
from tests.model.group_rows import GroupRows
from tests.model.member import DESCRIPTION
from tests.model.new_protocol_epochs import (
    Epoch,
    RecordedMember,
    grown,
)
from tests.model.rows import BALANCE, REBALANCE, Tables
from tests.model.server_assignments import likely_order, server_answer, voted
from tests.model.topics import Topics

_RELEASES = ("4.1.0", "4.0.0", "3.9")


class NewProtocolRows(GroupRows):
    """What is known of one group, and the rows that follow from it."""

    def __init__(self, cluster: str, name: str, topics: Topics, names: dict[str, str], tables: Tables) -> None:
        super().__init__(cluster, name, "kafka", tables)
        self.topics, self.names = topics, names
        self.members: dict[str, RecordedMember] = {}
        self.leaving: dict[str, RecordedMember] = {}  # their records are deleted, and no epoch has begun since
        self.matched: dict[str, list[str]] = {}
        self.left: dict[str, tuple[str, int]] = {}  # what the coordinator's log says of departures
        self.epoch = self.target_epoch = self.reached = 0
        self.open: list[Epoch] = []  # those without a row, the newest last
        # What members have had since, in which epoch; or which id has taken the place of which.
        self.waiting: list[tuple[Epoch, int, Held | tuple[str, str]]] = []
        self.shown: dict[str, dict[str, Any]] = {}  # members as the last epoch found them
        self.counts: dict[str, int] = {}  # topics as the last row or target has them
        self.targeted: dict[str, int] = {}  # topics as the last target has them
        self.held: Held = {}  # as of the last row
        self.computed: Held = {}
        self.target_before: Held = {}
        self.last_strategy: str | None = None  # of the last row
        self.row_counts: dict[str, int] = {}  # the topics of the last row
        self.queues_before = 0
        self.has_rows = False
        self.row: dict[str, Any] | None = None
        self.decided: dict[str, dict[str, Any]] = {}  # open sessions of members that a row has shown

    def subscribed(self, member: RecordedMember) -> set[str]:
        return {*(member.described.get("subscriptions") or ()), *self.matched.get(member.pattern or "", ())}

    def matched_topic(self, name: str, before: list[str], after: list[str]) -> str | None:
        """Return the topic that a member has newly subscribed to, if a pattern does that and it is just one."""
        added = set(after) - set(before)
        return added.pop() if self.members[name].pattern and len(added) == 1 else None

    def known(self, at: int, members: dict[str, dict[str, Any]]) -> dict[str, int]:
        """Return the partitions of the topics of an epoch: as the last target has shown them, else as metadata does."""
        names = {name for fields in members.values() for name in fields["subscriptions"]}
        topics = {name: len(queues) for name, queues in self.topics.at(at).items()} | self.counts
        return {name: topics[name] for name in names & topics.keys()}

    def is_stable(self, member: RecordedMember) -> bool:
        return member.epoch == self.target_epoch and member.state == "stable"

    def rename(self, at: int, former: str, name: str) -> None:
        self.rename_spans(at, former, name)
        for by_name in (self.held, self.computed, self.shown):
            if former in by_name:
                by_name[name] = by_name.pop(former)

    def write(self, epoch: Epoch, at: int, now: Held) -> None:
        """Write the row of an epoch, with what has happened in it."""
        self.open = [other for other in self.open if other is not epoch]
        self.reached = epoch.reached
        is_over = not self.open
        mine = [(when, noted) for of, when, noted in self.waiting if of is epoch]
        self.waiting = [noted for noted in self.waiting if noted[0] is not epoch]
        triggers, before = list(epoch.triggers), dict(self.held)
        for former, name in [noted for _, noted in mine if isinstance(noted, tuple)]:
            if former in before:
                before[name] = before.pop(former)
        moved = compared(owners(before), owners(now))
        # An assignor that only the target shows makes no row by itself.
        voted = self.strategy(epoch.members)
        is_other = bool(voted and epoch.members_before and self.last_strategy not in (None, voted))
        moves = moved["queues_moved"] or moved["queues_assigned"] or moved["queues_revoked"]
        is_row = bool(triggers or moves or is_other)
        self.generation = epoch.number if is_row else self.generation
        for when, noted in mine:
            if isinstance(noted, tuple):
                self.rename(when, *noted)
            else:
                self.open_spans(when, "reported", noted)
        self.show_members(epoch)
        if not is_row:
            return
        strategy = epoch.strategy or self.strategy(epoch.members)
        if self.last_strategy not in (None, strategy) and strategy and epoch.members_before:
            triggers.append(("strategy_changed", None, None))
        self.last_strategy = strategy or self.last_strategy
        triggers = triggers or [("unexplained", None, None)]
        if not self.has_rows:
            triggers.append(("group_created", None, None))
        self.has_rows = True
        members = epoch.members
        if epoch.targets is None:
            epoch.counts = self.counts = self.known(at, members)
        queues = sum(epoch.counts.values()) if members else 0
        more = grown(epoch.counts, self.topics.at(at)) if members else 0
        has_verdict = epoch.targets is not None and bool(members)
        self.row = row = {
            "cluster": self.cluster, "group_id": self.name, "event_time": at, "generation": epoch.number,
            "generation_source": "reported", "trigger": min((kind for kind, _, _ in triggers), key=ORDER.index),
            "triggers": sorted(triggers, key=repr), "strategy": strategy, "leader": None,
            "mode": "clustering", "status": "completed",
            "members_before": epoch.members_before, "members_after": len(members),
            "queues_before": self.queues_before, "queues_after": queues + more, **moved,
            "generations_missed": epoch.missed,
            **self.balance(members, epoch.counts, now),
            "agrees": True if has_verdict else None, "queues_differing": 0 if has_verdict else None,
        }  # fmt: skip
        # Without a target the one before stands, of members that are still there.
        self.computed = epoch.targets or {name: held for name, held in self.computed.items() if name in members}
        self.open_spans(at, "computed", self.computed)
        self.held, self.queues_before, self.row_counts = now, queues, epoch.counts
        if is_over:
            self.find(at, row)
        else:  # who has what is only passing
            self.finding(at, "generations_missed", bool(epoch.missed))
        row["unassigned_queues"] += more
        self.tables.rebalances.append(row)

    def show_members(self, epoch: Epoch) -> None:
        """Write the sessions that have begun and ended by a row."""
        self.tables.members += epoch.ended
        self.decided = dict(epoch.sessions)

    def targets(self) -> Held:
        return {
            name: [(self.names.get(topic, topic), None, number) for topic, number in member.target]
            for name, member in self.members.items()
        }

    def strategy(self, members: dict[str, dict[str, Any]]) -> str | None:
        """Return the assignor that most members name; of several, without a target, the likeliest."""
        named = [_assignor(fields["strategies"]) for fields in members.values()]
        return f"kafka.server.{self.candidates(named)[0]}" if members else None

    def candidates(self, named: list[str | None], asking: str | None = None) -> list[str]:
        """Return the assignors that may have won, the last one first: what nothing shows is no change."""
        found = voted([name for name in named if name], "uniform", asking)
        return sorted(found, key=lambda name: f"kafka.server.{name}" != self.last_strategy)

    def strategy_of_target(self, epoch: Epoch, before: Held) -> str | None:
        """Return the assignor that gives a target; where several may have won, the first that does."""
        newest = [name for name in epoch.members if self.members[name].is_new]
        named = {name: _assignor(member.described.get("strategies")) for name, member in self.members.items()}
        candidates = self.candidates(list(named.values()), named[newest[-1]] if newest else None)
        for candidate in candidates if len(candidates) > 1 else ():
            if self.gives(candidate, epoch, before, newest[-1] if newest else None):
                return f"kafka.server.{candidate}"
        return f"kafka.server.{candidates[0]}" if epoch.members else None

    def gives(self, assignor: str, epoch: Epoch, before: Held, newest: str | None) -> bool:
        """Return whether an assignor, of any release, gives the target of an epoch."""
        ids = {name: topic for topic, name in self.names.items()}
        members = {
            name: {
                **fields,
                "pattern": self.members[name].pattern,
                "instance_id": self.members[name].described.get("instance_id"),
            }
            for name, fields in epoch.members.items()
        }
        topics = {name: (ids[name], count) for name, count in epoch.counts.items()}
        previous = {name: [(topic, number) for topic, _, number in held] for name, held in before.items()}
        wanted = {name: {(topic, number) for topic, _, number in (epoch.targets or {})[name]} for name in members}
        for asking in dict.fromkeys((newest, None)):
            order = likely_order(members, asking)
            for release in _RELEASES:
                answer = server_answer(assignor, members, topics, previous, order, release)
                if {name: set(queues) for name, queues in answer.items()} == wanted:
                    return True
        return False

    def balance(self, members: dict[str, dict[str, Any]], queues: dict[str, int], held: Held) -> dict[str, int]:
        wanted = {(topic, None, number) for topic, count in queues.items() for number in range(count)}
        counts = [len(held.get(name, ())) for name, fields in members.items() if fields["subscriptions"]]
        return {
            "idle_members": counts.count(0), "unassigned_queues": len(wanted - owners(held).keys()) if members else 0,
            "spread": max(counts, default=0) - min(counts, default=0),
        }  # fmt: skip

    def close_session(self, name: str, member: RecordedMember, at: int, reason: str) -> None:
        if at > member.joined_at:
            ended = self.open[-1].ended if self.open else self.tables.members
            ended.append(self.session(name, member) | {"left_at": at, "left_reason": reason})
            if not self.open:
                self.decided.pop(name, None)

    def session(self, name: str, member: RecordedMember) -> dict[str, Any]:
        described = {name: member.described.get(name) for name in DESCRIPTION if name != "session_timeout_ms"}
        described["subscriptions"] = sorted(self.subscribed(member))
        return {
            "cluster": self.cluster, "group_id": self.name, "member_id": name, **described,
            "joined_at": member.joined_at, "left_at": None, "left_reason": None, "last_heartbeat_at": None,
        }  # fmt: skip

    def finish(self) -> None:
        """Write what is open at the end."""
        self.tables.spans += self.spans.values()
        self.tables.findings += self.findings.values()
        self.tables.members += self.decided.values()
        if self.epoch:
            self.tables.groups.append(self.now())

    def now(self) -> dict[str, Any]:
        """Return the row of ``groups``: the last rebalance, and the members as they are now."""
        row = self.row or dict.fromkeys(REBALANCE) | {"mode": "clustering"} | dict.fromkeys(
            ("queues_after", *BALANCE), 0
        )
        more = 0
        if self.members and row["members_after"]:
            more = sum(self.row_counts.values()) + grown(self.row_counts, self.topics.at(2**62)) - row["queues_after"]
        is_there = all(self.is_stable(member) for member in self.members.values())
        state = "empty" if not self.members else "stable" if is_there else "reconciling"
        return {
            "cluster": self.cluster, "group_id": self.name,
            "state": "assigning" if self.members and self.epoch > self.target_epoch else state,
            "mode": row["mode"], "strategy": row["strategy"],
            "generation": self.reached if self.row else None,
            "generation_source": row["generation_source"], "members": len(self.members),
            "queues": row["queues_after"] + more, **{name: row[name] for name in BALANCE},
            "unassigned_queues": row["unassigned_queues"] + more,
            "last_rebalance_at": row["event_time"],
        }  # fmt: skip


def _assignor(strategies: list[str] | None) -> str | None:
    return strategies[0].removeprefix("server.") if strategies else None
