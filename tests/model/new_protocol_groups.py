"""Groups of Kafka's new protocol in the model: a coordinator's records in, rows out, one record after the other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.model.allocation import Held, compared, owners
from tests.model.group import DEPARTED, ORDER, Trigger
from tests.model.group_rows import GroupRows
from tests.model.member import DESCRIPTION
from tests.model.server_assignments import likely_order, server_answer, voted
from tests.model.rows import BALANCE, REBALANCE, Tables
from tests.model.times import Event
from tests.model.topics import Topics

AWAY = -2


class Anything:
    """Equals all values: what the core writes there is not compared."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "not compared"

    def __add__(self, other: object) -> Anything:
        return self

    __rsub__ = __sub__ = __radd__ = __add__


ANYTHING = Anything()
# The core does not always count queues that metadata has shown while an epoch was under way that another one overtakes:
# it leaves them out if the epoch itself was caused by growth of this topic, and, where there was no target, if no
# target of a member that stays names the topic. The contract makes no such difference.
GROWN_MEANWHILE = ("queues_after", "unassigned_queues")
Owned = set[tuple[str, int]]  # topic id, partition


@dataclass
class RecordedMember:
    """A member as the records show it."""

    joined_at: int
    described: dict[str, Any] = field(default_factory=dict)
    pattern: str | None = None
    epoch: int | None = None
    state: str = "stable"
    held: Owned = field(default_factory=set)  # with what it has yet to give up
    target: list[tuple[str, int]] = field(default_factory=list)  # in the order of its record
    is_new: bool = True  # since the last target

    def fields(self) -> dict[str, Any]:
        return self.described


@dataclass
class Epoch:
    """An epoch that has no row yet."""

    number: int
    began_at: int
    triggers: list[Trigger]
    members: dict[str, dict[str, Any]]  # as the epoch found them
    members_before: int
    missed: int | None
    held: Held  # what members had when it began, those included that have departed with it
    counts: dict[str, int]  # the topics when it was overtaken, or reached
    changes: bool  # as far as it is known: one that changes nothing overtakes none
    reached: int  # the newest that changed nothing since
    strategy: str | None = None  # that its target shows
    targets: Held | None = None  # what they shall have
    sessions: dict[str, dict[str, Any]] = field(default_factory=dict)  # of its members
    ended: list[dict[str, Any]] = field(default_factory=list)  # sessions that ended with it, or in it


class NewProtocolGroup(GroupRows):
    """One group, from its first record on."""

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
        self.last_strategy: str | None = None
        self.row_counts: dict[str, int] = {}  # the topics of the last row
        self.queues_before: int | Anything = 0
        self.has_rows = False
        self.row: dict[str, Any] | None = None
        self.decided: dict[str, dict[str, Any]] = {}  # open sessions of members that a row has shown

    # ---- records

    def take(self, at: int, records: list[Event]) -> None:
        """Take in the records of one time."""
        for record in records:
            self.take_record(at, record)
        for name in sorted(self.leaving):  # no epoch came of it
            self.end_session(at, name)

    def take_record(self, at: int, record: Event) -> None:
        kind, name, is_deleted = record["record"], record.get("member_id", ""), record.get("deleted", False)
        match kind:
            case "group" if is_deleted:
                self.delete(at)
            case "group":
                self.begin_epoch(at, record["epoch"])
            case "target" if not is_deleted:
                self.publish(at, record["epoch"])
            case "topics":
                self.names.update(record.get("topic_ids") or {})
            case "pattern":
                self.matched[record["pattern"]] = record.get("topics") or []
            case "member" | "member_target" | "member_current" if is_deleted:
                if name in self.members:
                    self.leaving[name] = self.members.pop(name)
            case "member":
                self.describe(at, name, record)
            case "member_target" if name in self.members:
                self.members[name].target = _in_order(record["partitions"])
            case "member_current" if name in self.members:
                self.follow(at, name, record)

    def describe(self, at: int, name: str, record: Event) -> None:
        described = record["member"]
        if name not in self.members:
            member = self.members[name] = RecordedMember(at, described, record.get("pattern"))
            former = self.former(described.get("instance_id"))
            if former is not None:
                self.take_place(at, former, name)
                sessions = self.open[-1].sessions if self.open else self.decided
                sessions.pop(former, None)
                sessions[name] = self.session(name, member)
        self.members[name].described, self.members[name].pattern = described, record.get("pattern")

    def former(self, instance_id: str | None) -> str | None:
        found = [name for name, member in self.leaving.items() if member.described.get("instance_id") == instance_id]
        return found[0] if instance_id is not None and found else None

    def take_place(self, at: int, former: str, name: str) -> None:
        """Let a static member go on under a new id."""
        old = self.leaving.pop(former)
        self.close_session(former, old, at, "replaced")
        self.members[name].held, self.members[name].target = set(old.held), list(old.target)
        if not self.open:
            self.rename(at, former, name)
            return
        epoch = self.open[-1]
        self.waiting.append((epoch, at, (former, name)))
        for by_name in (self.shown, epoch.members, epoch.targets or {}):
            if former in by_name:
                by_name[name] = by_name.pop(former)

    def rename(self, at: int, former: str, name: str) -> None:
        self.rename_spans(at, former, name)
        for by_name in (self.held, self.computed, self.shown):
            if former in by_name:
                by_name[name] = by_name.pop(former)

    def follow(self, at: int, name: str, record: Event) -> None:
        member = self.members[name]
        member.epoch, member.state = record["epoch"], record["state"]
        member.held = _owned(record["partitions"]) | _owned(record.get("revoking") or [])
        self.note_held(at)
        self.converge(at)

    def note_held(self, at: int) -> None:
        """Note what members have; spans of an epoch are written with its row."""
        if self.open:
            self.waiting.append((self.open[-1], at, self.held_now()))
        else:
            self.open_spans(at, "reported", self.held_now())

    def held_now(self) -> Held:
        """Return what members hold, those included whose departure no epoch has shown."""
        return {
            name: sorted((self.names.get(topic, topic), None, number) for topic, number in member.held)
            for name, member in {**self.members, **self.leaving}.items()
        }

    # ---- epochs

    def subscribed(self, member: RecordedMember) -> set[str]:
        return {*(member.described.get("subscriptions") or ()), *self.matched.get(member.pattern or "", ())}

    def shown_now(self) -> dict[str, dict[str, Any]]:
        return {
            name: {
                "subscriptions": sorted(self.subscribed(member)),
                "strategies": list(member.described.get("strategies") or ()),
            }
            for name, member in self.members.items()
        }

    def begin_epoch(self, at: int, number: int) -> None:
        members, before = self.shown_now(), self.shown
        triggers: list[Trigger] = [("member_joined", name, None) for name in members if name not in before]
        departures = {name: self.departure(at, name) for name in self.leaving}
        triggers += [(DEPARTED[reason], name, None) for name, (reason, _) in departures.items()]
        triggers += [
            ("subscription_changed", name, None)
            for name in members.keys() & before.keys()
            if members[name]["subscriptions"] != before[name]["subscriptions"]
        ]
        missed = number - self.epoch - 1 if self.epoch and number > self.epoch + 1 else None
        begun = Epoch(number, at, triggers, members, len(before), missed, self.held_now(), self.known(at, members), bool(triggers), number)
        if self.open:
            self.settle()
        begun.sessions = {name: self.session(name, member) for name, member in self.members.items()}
        self.open.append(begun)
        for name in sorted(self.leaving):
            self.end_session(at, name)
        self.epoch, self.shown = number, members
        self.note_held(at)
        if not self.members:
            self.targeted = {}
            self.settle()
            self.write(begun, at, self.held_now())

    def publish(self, at: int, number: int) -> None:
        """Take in a new target: of the epochs since the last one all but the last are over."""
        self.target_epoch = number
        if self.open:
            newest = self.open[-1]
            counts = self.shown_by_target(at, newest.members)
            newest.changes |= any(counts[topic] != self.targeted[topic] for topic in counts.keys() & self.targeted.keys())
            self.settle()
            epoch = self.open[-1]
            epoch.targets = self.targets()
            before, epoch.counts = self.counts, self.shown_by_target(at, epoch.members)
            epoch.strategy = self.strategy_of_target(epoch, self.target_before)
            self.target_before = epoch.targets
            for member in self.members.values():
                member.is_new = False
            more = [topic for topic in sorted(before.keys() & epoch.counts) if epoch.counts[topic] != before[topic]]
            epoch.triggers += [("queue_count_changed", None, topic) for topic in more]
            self.counts = self.targeted = epoch.counts
        self.converge(at)

    def known(self, at: int, members: dict[str, dict[str, Any]]) -> dict[str, int]:
        """Return the partitions of the topics of an epoch: as the last target has shown them, else as metadata does."""
        names = {name for fields in members.values() for name in fields["subscriptions"]}
        topics = {name: len(queues) for name, queues in self.topics.at(at).items()} | self.counts
        return {name: topics[name] for name in names & topics.keys()}

    def shown_by_target(self, at: int, members: dict[str, dict[str, Any]]) -> dict[str, int]:
        """Return the same once the target is there: it may name more than metadata has."""
        counts = self.known(at, members)
        for member in self.members.values():
            for topic, number in member.target:
                name = self.names.get(topic, topic)
                if any(name in fields["subscriptions"] for fields in members.values()):
                    counts[name] = max(counts.get(name, 0), number + 1)
        return counts

    def settle(self) -> None:
        """Write the rows of the epochs that newer ones have overtaken; one without any change overtakes none."""
        current = self.open[0]
        for newer in self.open[1:]:
            if newer.changes:
                self.write(current, newer.began_at, newer.held, is_reached=False)
                current = newer
            else:
                self.waiting = [(current if of is newer else of, when, noted) for of, when, noted in self.waiting]
                current.members, current.sessions = newer.members, newer.sessions
                current.ended += newer.ended
                current.reached, current.counts = newer.reached, newer.counts
        self.open = [current]

    def converge(self, at: int) -> None:
        """Write the row of an epoch that all members have reached."""
        is_there = all(
            member.held == set(member.target) if member.epoch == AWAY else self.is_stable(member)
            for member in self.members.values()
        )
        if self.open and is_there and self.target_epoch == self.epoch:
            self.write(self.open[-1], at, self.held_now())

    def is_stable(self, member: RecordedMember) -> bool:
        return member.epoch == self.target_epoch and member.state == "stable"

    def departure(self, at: int, name: str) -> tuple[str, int]:
        """Return how a member departed whose records are deleted, and when."""
        return self.left.get(name, ("expired" if self.leaving[name].epoch == AWAY else "absent_from_snapshot", at))

    def end_session(self, at: int, name: str) -> None:
        reason, when = self.departure(at, name)
        self.close_session(name, self.leaving.pop(name), when, reason)

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

    # ---- rows

    def write(self, epoch: Epoch, at: int, now: Held, *, is_reached: bool = True) -> None:
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
        is_row = bool(triggers or moved["queues_moved"] or moved["queues_assigned"] or moved["queues_revoked"])
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
        row["unassigned_queues"] += more
        if more and not (is_reached and all(kind != "queue_count_changed" for kind, _, _ in triggers)):
            row |= dict.fromkeys(GROWN_MEANWHILE, ANYTHING)
            self.queues_before = ANYTHING
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
        named = [fields["strategies"][0].removeprefix("server.") for fields in members.values() if fields["strategies"]]
        candidates = voted(named, "uniform")
        candidates.sort(key=lambda name: f"kafka.server.{name}" != self.last_strategy)
        return f"kafka.server.{candidates[0]}" if members else None

    def strategy_of_target(self, epoch: Epoch, before: Held) -> str | None:
        """Return the assignor that gives a target; where several may have won, the first that does."""
        lists = [member.described.get("strategies") for member in self.members.values()]
        named = [names[0].removeprefix("server.") for names in lists if names]
        ids = {name: topic for topic, name in self.names.items()}
        members = {
            name: fields | {"pattern": self.members[name].pattern, "instance_id": self.members[name].described.get("instance_id")}
            for name, fields in epoch.members.items()
        }
        topics = {name: (ids[name], count) for name, count in epoch.counts.items()}
        previous = {name: [(topic, number) for topic, _, number in held] for name, held in before.items()}
        newest = [name for name in members if self.members[name].is_new] or [None]
        candidates = voted(named, "uniform", (members[newest[-1]]["strategies"] or [""])[0][7:] if newest[-1] else None)
        # A change that nothing shows is none.
        candidates.sort(key=lambda name: f"kafka.server.{name}" != self.last_strategy)
        for candidate in candidates if len(candidates) > 1 else ():
            for asking in dict.fromkeys((newest[-1], None)):
                for release in ("4.1.0", "4.0.0", "3.9"):
                    order = likely_order(members, asking)
                    answer = server_answer(candidate, members, topics, previous, order, release)
                    if all(set(answer[name]) == {(t, n) for t, _, n in (epoch.targets or {})[name]} for name in members):
                        return f"kafka.server.{candidate}"
        return f"kafka.server.{candidates[0]}" if members else None

    def balance(self, members: dict[str, dict[str, Any]], queues: dict[str, int], held: Held) -> dict[str, int]:
        wanted = {(topic, None, number) for topic, count in queues.items() for number in range(count)}
        counts = [len(held.get(name, ())) for name, fields in members.items() if fields["subscriptions"]]
        return {
            "idle_members": counts.count(0), "unassigned_queues": len(wanted - owners(held).keys()) if members else 0,
            "spread": max(counts, default=0) - min(counts, default=0),
        }  # fmt: skip

    def delete(self, at: int) -> None:
        """End everything: later records are of another group."""
        for name in list(self.members):
            self.leaving[name] = self.members.pop(name)
        for name in sorted(self.leaving):
            self.end_session(at, name)
        self.close_spans(at, ())
        for kind in list(self.findings):
            self.finding(at, kind, False)
        self.epoch = self.target_epoch = self.queues_before = 0
        self.open, self.waiting, self.row = [], [], None
        self.shown, self.counts, self.targeted, self.held, self.matched, self.left = {}, {}, {}, {}, {}, {}
        self.has_rows = False

    def finish(self) -> None:
        """Write what is open at the end."""
        self.tables.spans += self.spans.values()
        self.tables.findings += self.findings.values()
        self.tables.members += self.decided.values()
        if self.epoch:
            self.tables.groups.append(self.now())

    def now(self) -> dict[str, Any]:
        """Return the row of ``groups``: the last rebalance, and the members as they are now."""
        row = self.row or dict.fromkeys(REBALANCE) | {"mode": "clustering"} | dict.fromkeys(("queues_after", *BALANCE), 0)
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


def grown(counts: dict[str, int], topics: dict[str, list[dict[str, Any]]]) -> int:
    """Return how many queues metadata shows that an epoch does not know."""
    return sum(max(0, len(topics.get(topic, ())) - count) for topic, count in counts.items())


def _in_order(partitions: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return [(topic["topic"], number) for topic in partitions for number in topic["partitions"]]


def _owned(partitions: list[dict[str, Any]]) -> Owned:
    return set(_in_order(partitions))
