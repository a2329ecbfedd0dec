"""One group of the model: its members, their queues, and one row for each time at which it changed."""

from __future__ import annotations

import dataclasses
from typing import Any

from tests.model.allocation import Held, NoAnswer, allocate, chosen_strategy, compared, owners, wanted_queues
from tests.model.late_events import with_late
from tests.model.member import DESCRIPTION, FIELDS, TIMEOUTS, Member, is_bare
from tests.model.reports import Reports, former_ids, under_former_ids
from tests.model.rows import GROUP, Tables
from tests.model.static_members import former_of, members_of, replace, replace_absent, under_present_ids
from tests.model.times import Event
from tests.model.topics import Topics
from udfs.model.systems import SYSTEMS
from udfs.strategies.registry import qualified_name

ORDER = (
    "group_created", "session_expired", "member_left", "member_gone", "member_joined", "subscription_changed",
    "strategy_changed", "settings_changed", "queue_count_changed", "topic_learned",
    "cooperative_follow_up", "coordinator_changed", "late_evidence", "unexplained",
)  # fmt: skip
DEPARTED = {
    "left": "member_left", "expired": "session_expired", "gone": "member_gone", "absent_from_snapshot": "member_gone",
    "replaced": "member_gone",
}  # fmt: skip
Trigger = tuple[str, str | None, str | None]


@dataclasses.dataclass
class Pending:
    """A rebalance that has begun; changes within the settling time join it."""

    opened_at: int
    members_before: int
    changed_at: int = 0
    triggers: list[Trigger] = dataclasses.field(default_factory=list)
    renames: list[tuple[int, str, str]] = dataclasses.field(default_factory=list)  # when, the former id, the new one


class Group(Reports):
    """A group with counted generations; reported ones are in ``reported``."""

    def __init__(self, cluster: str, name: str, system: str, topics: Topics, tables: Tables) -> None:
        super().__init__(cluster, name, system, tables)
        self.topics = topics
        self.pending: Pending | None = None
        self.members: dict[str, Member] = {}
        self.departed: dict[str, dict[str, tuple[Any, int]]] = {}
        self.has_rows = False  # since it was created, or created again
        self.settings: dict[str, tuple[Any, int]] = {}
        self.strategy: str | None = None
        self.last_applied: int | None = None
        self.shown_at = 0  # the last time at which something showed that it exists
        self.deleted_at = 0  # late events before this time belong to the group before the deletion
        self.queues_before = 0
        self.departed_at: dict[str, int] = {}
        self.over_at: dict[str, int] = {}  # events up to this time belong to a session that is over
        self.ended: dict[str, tuple[str, int]] = {}  # member -> how its last session ended, and when that session began
        self.returned_after: dict[str, int] = {}  # member -> events up to this time are older than its polled session
        self.leaving: dict[str, tuple[Member, int, str]] = {}
        self.replaced: set[str] = set()  # ids whose place another id took
        self.renamed: dict[str, str] = {}  # at this time: new id -> former id
        self.beats: set[str] = set()  # members that send a heartbeat at this time
        self.is_polled = False
        self.polled_at = 0
        self.settle_ms = 0
        self.expired_at = 0  # the last time at which a session expired: after all events of that time
        self.follows_up = False  # a member joins for the second half of a cooperative move
        # caused by a late event: when, members before it, triggers
        self.late: tuple[int, int, list[Trigger]] | None = None
        self.is_outdated = False  # the event carries a value older than the current one
        self.had_members = False  # an event came from a member that had departed before
        self.is_listed = False  # a poll showed it without members, before any rebalance
        self.set_empty = False  # settings were given while it was empty: its row shows them

    # ---- time

    def timeout(self, member: Member) -> int:
        reported = member.fields().get("session_timeout_ms")
        return TIMEOUTS[self.system] if reported is None else reported

    def deadlines(self) -> dict[str, int]:
        return {
            name: max(member.last + self.timeout(member), member.not_before)
            for name, member in self.members.items()
            if member.lives_by == "heartbeats"
        }

    def wakes(self) -> set[int]:
        """Return the time at which something is due without an event."""
        return {
            *self.deadlines().values(),
            *([] if self.pending is None else [self.pending.opened_at + self.settle_ms]),
        }

    def event_time(self, at: int, events: list[Event], grown: set[str]) -> None:
        """Apply everything of one time: events in their order, then expiries.

        Args:
            grown: Topics whose queues are others from this moment on.
        """
        self.beats = {event["member_id"] for event in events if is_bare(event)}
        self.reports = [event for event in events if event["type"] == "assignment_reported"]
        events = [event for event in events if event["type"] != "assignment_reported"]
        ends = [place + 1 for place, event in enumerate(events) if event["type"] == "group_deleted"]
        for low, high in zip([0, *ends], [*ends, len(events)], strict=True):
            # Events after a deletion belong to another group.
            before, settings = self.fields(), self.shared()
            self.renamed = {}
            departures: dict[str, str] = {}
            for event in events[low:high]:
                self.apply(at, event, departures)
            if high == len(events) and high not in ends:
                for name, deadline in sorted(self.deadlines().items()):
                    if deadline <= at:
                        self.expired_at = at
                        departures[name] = self.depart(name, deadline, "expired", self.own_deadline(name))
            self.end_sessions(departures)
            self.decide(at, before, settings, departures, grown)
            if high in ends:
                self.end(at, events[high - 1]["event_time"])
            grown = set()
        self.take_reports(at)
        if self.pending is not None and self.pending.opened_at + self.settle_ms <= at:
            self.settle()
        self.list_if_empty()

    def list_if_empty(self) -> None:
        """List a group that a poll showed and that never had members."""
        is_decided = self.row is not None or self.pending is not None or self.late is not None
        self.is_listed |= (self.is_polled or self.had_members) and not self.members and not is_decided
        self.had_members = False

    def fields(self) -> dict[str, dict[str, Any]]:
        """Return the descriptions of all members."""
        return {name: member.fields() for name, member in self.members.items()}

    def shared(self) -> dict[str, Any]:
        """Return the group's own settings."""
        return {"mode": "clustering"} | {name: value for name, (value, _) in self.settings.items()}

    # ---- events

    def apply(self, at: int, event: Event, departures: dict[str, str]) -> None:
        if self.is_repeat(event):
            return
        name = event.get("member_id")
        self.is_outdated = False
        self.note_sign(event)
        match event["type"]:
            case "member_joined" | "heartbeat":
                self.alive(at, event["member_id"], event, departures)
            case "member_left":
                if name not in self.members:
                    self.note_absence(event)
                elif self.members[name].last <= at:  # otherwise a heartbeat is newer
                    departures[name] = self.depart(name, at, "left")
            case "group_settings":
                self.set_settings(event)
            case "group_snapshot":
                self.snapshot(at, event, departures)
            case "group_deleted":
                for name in sorted(self.members):
                    departures[name] = self.depart(name, at, "gone")
        if self.is_outdated:
            self.tables.late[f"{self.cluster}/{self.name}"] += 1

    def note_sign(self, event: Event) -> None:
        """Note that something shows the group: a member, a poll, its settings."""
        if event["type"] in ("member_joined", "heartbeat", "group_snapshot", "group_settings"):
            self.shown_at = max(self.shown_at, event["event_time"])

    def set_settings(self, event: Event) -> None:
        """Take in settings, except those for which a newer event had a value."""
        for field in ("mode", "strategy", "strategy_settings"):
            if event.get(field) is not None and event["event_time"] >= self.settings.get(field, (None, 0))[1]:
                self.settings[field] = (event[field], event["event_time"])
            elif event.get(field) not in (None, self.shared().get(field)):
                self.is_outdated = True
        if not self.members:
            self.set_empty = True

    def alive(self, at: int, name: str, event: Event, departures: dict[str, str]) -> None:
        member = self.members.get(name)
        if member is None:
            if self.over_at.get(name, 0) >= at and (event["type"] == "heartbeat" or name in self.replaced):
                # The event was sent before the member departed: only a later one is a join, but its description counts
                # later.
                departed = Member(at, "heartbeats", dict(self.departed.get(name, {})))
                former = self.taken_over(departed, event)
                if former is not None:
                    departures[former] = self.depart(former, at, "replaced")
                self.describe(departed, event, event["event_time"])
                self.departed[name] = departed.described
                self.had_members = event["event_time"] > self.deleted_at
                return
            instance_id = event.get("instance_id")
            if instance_id is None and name in self.replaced:
                instance_id = self.departed[name].get("instance_id", (None,))[0]
            former = former_of(self, instance_id, self.members)
            if former is not None:
                replace(self, at, former, name, "heartbeats")
        elif (former := self.taken_over(member, event)) is not None:
            departures[former] = self.depart(former, at, "replaced")
        elif self.revoked and event["type"] == "member_joined" and event.get("owned") is not None:
            self.follows_up = True  # the member released its queues, and joins again with those it kept
        member = self.members.get(name) or self.join(at, name, "heartbeats")
        member.last = max(member.last, at)
        member.lives_by = "heartbeats"
        self.describe(member, event, event["event_time"])

    def taken_over(self, member: Member, event: Event) -> str | None:
        """Return the member whose place a static member took, if that member sent something before this one joined."""
        if member.fields().get("instance_id") is not None:
            return None
        return former_of(self, event.get("instance_id"), self.members)

    def own_deadline(self, name: str) -> int:
        """Return the end of a session by what was sent, whenever that arrived."""
        member = self.members[name]
        return max(member.last + self.timeout(member), member.described.get("session_timeout_ms", (None, 0))[1])

    def show_alive(self, name: str, own: int) -> None:
        """Let a member live by the snapshots of polls after its heartbeats have ended."""
        member = self.members[name]
        if member.lives_by == "heartbeats" and self.own_deadline(name) < own:
            self.returned_after[name] = member.began_at - 1
            member.lives_by, member.had_heartbeats, member.began_at = "snapshots", True, own

    def join_polled(self, at: int, name: str, own: int) -> None:
        """Begin the session of a member that a poll shows."""
        reason, began_at = self.ended.get(name, ("", 0))
        self.returned_after[name] = began_at - 1 if reason == "expired" else self.over_at.get(name, -1)
        self.join(at, name, "snapshots").began_at = own

    def join(self, at: int, name: str, lives_by: str) -> Member:
        self.replaced.discard(name)
        self.members[name] = Member(at, lives_by, self.departed.pop(name, {}))
        return self.members[name]

    def describe(self, member: Member, fields: dict[str, Any], reported_at: int) -> bool:
        """Take in what an event describes; return whether anything differs from before."""
        differs = any(fields.get(field) not in (None, member.fields().get(field)) for field in FIELDS)
        for field in FIELDS:
            if fields.get(field) is not None and reported_at >= member.described.get(field, (None, 0))[1]:
                if field == "session_timeout_ms" and fields[field] != member.fields().get(field):
                    member.not_before = reported_at
                member.described[field] = (fields[field], reported_at)
            elif fields.get(field) not in (None, member.fields().get(field)):
                self.is_outdated = True
        return differs

    def snapshot(self, at: int, event: Event, departures: dict[str, str]) -> None:
        self.is_polled, self.polled_at = True, at
        event = under_present_ids(self, event)
        reported = members_of(event)
        replace_absent(self, at, reported, own=event["event_time"])
        for name in sorted(self.members.keys() - reported.keys()):
            if self.members[name].last <= at:  # otherwise a heartbeat is newer
                departures[name] = self.depart(name, at, "absent_from_snapshot")
        own = event["event_time"]
        for name, info in reported.items():
            if name not in self.members and self.over_at.get(name, 0) > own:
                continue
            if name not in self.members:
                self.join_polled(at, name, own)
            self.show_alive(name, own)
            self.describe(self.members[name], info, own)
        self.last_applied = at

    def end(self, at: int, own: int) -> None:
        """Decide what is pending of a group that is deleted, and forget it; ``own``: the time of the deletion."""
        if self.pending is not None:
            self.pending.changed_at = at
            self.settle()
        self.forget(at, own)

    def forget(self, at: int, own: int) -> None:
        """Forget everything but the counter: later events belong to another group."""
        # If nothing ends here, only events before the deletion are too late.
        since = at if self.has_rows or self.is_listed else own
        self.last_applied = max(since, self.last_applied or since)
        self.deleted_at = max(own, self.deleted_at)
        self.has_rows, self.is_polled, self.row, self.pending = False, False, None, None
        self.is_listed, self.set_empty = False, False
        self.polled_at = 0
        self.revoked = []
        self.settings, self.departed, self.departed_at, self.over_at, self.replaced = {}, {}, {}, {}, set()
        self.ended, self.returned_after = {}, {}
        self.shown_at = 0
        self.forget_reports()

    def note_absence(self, event: Event) -> None:
        """Note that an unknown member left: earlier events of it no longer prove that it is there."""
        name, own = event["member_id"], event["event_time"]
        if name not in self.departed:
            self.departed[name], self.departed_at[name] = {}, own
        if own > self.over_at.get(name, 0):
            self.over_at[name], self.ended[name] = own, ("left", self.ended.get(name, ("", own))[1])

    def depart(self, name: str, at: int, reason: str, own: int | None = None) -> str:
        member = self.members.pop(name)
        member.described.pop("owned", None)
        self.departed[name], self.ended[name] = member.described, (reason, member.began_at)
        self.replaced |= {name} if reason == "replaced" else set()
        self.departed_at[name], self.over_at[name] = at, at if own is None else own
        if name in self.beats and reason != "expired" and member.lives_by == "heartbeats":
            member.last = at
        self.leave(name, member, at, reason)
        return reason

    def leave(self, name: str, member: Member, at: int, reason: str) -> None:
        """Note the end of a session; for a member that was back for less than a millisecond, of the session before."""
        if name in self.leaving and self.leaving[name][2] != "replaced":
            former = self.leaving[name][0]
            member.joined_at = former.joined_at
            if former.lives_by == "heartbeats" and member.lives_by != "heartbeats":
                member.last, member.lives_by = former.last, "heartbeats"
        self.leaving[name] = (member, at, reason)

    def end_sessions(self, departures: dict[str, str]) -> None:
        """End the sessions of this time's departures; a member that is back within it never departed."""
        for name, (member, at, reason) in sorted(self.leaving.items()):
            # An exception is a member that came back in the place of another id, where both were members.
            is_same = name not in self.renamed or member.joined_at == at
            if name in self.members and reason != "replaced" and is_same:
                self.members[name].joined_at, self.members[name].is_new = member.joined_at, member.is_new
                del departures[name]
            elif at > member.joined_at:
                self.tables.members.append(self.session(name, member) | {
                    "left_at": at, "left_reason": reason,
                    "last_heartbeat_at":
                        member.last if member.lives_by == "heartbeats" or member.had_heartbeats else None,
                })  # fmt: skip
        self.leaving = {}

    def session(self, name: str, member: Member) -> dict[str, Any]:
        return {
            "cluster": self.cluster, "group_id": self.name, "member_id": name,
            **{field: member.fields().get(field) for field in DESCRIPTION if field != "session_timeout_ms"},
            "joined_at": member.joined_at,
            "left_at": None, "left_reason": None, "last_heartbeat_at": None,
        }  # fmt: skip

    def strategy_set(self) -> str | None:
        """Return the strategy that is set for the group."""
        name = self.shared().get("strategy")
        return name and qualified_name(name, self.system)

    # ---- deciding

    def decide(
        self,
        at: int,
        before: dict[str, dict[str, Any]],
        settings: dict[str, Any],
        departures: dict[str, str],
        grown: set[str],
    ) -> None:
        """Let a rebalance begin, or go on, if this time has changed the state."""
        triggers, members_before = with_late(self, self.differences(before, settings, departures, grown), len(before))
        if not triggers or (self.pending is None and not self.has_rows and not self.members):
            return
        if self.pending is None:
            self.pending = Pending(at, members_before)
        self.pending.changed_at = self.last_applied = at
        self.pending.triggers += [trigger for trigger in triggers if trigger not in self.pending.triggers]

    def settle(self) -> None:
        """Write the pending rebalance: its time is that of its last change, and ids are as they were then."""
        pending, self.pending = self.pending, None
        if not self.has_rows:
            pending.triggers.append(("group_created", None, None))
        self.has_rows = True
        self.generation += 1
        at = pending.changed_at
        for when, old, new in [rename for rename in pending.renames if rename[0] <= at]:
            self.rename_spans(when, old, new)
        self.rebalance(
            at, pending.triggers, pending.members_before, [rename for rename in pending.renames if rename[0] > at]
        )

    def differences(
        self,
        before: dict[str, dict[str, Any]],
        settings: dict[str, Any],
        departures: dict[str, str],
        grown: set[str],
    ) -> list[Trigger]:
        triggers: list[Trigger] = []
        after = {name: member.fields() for name, member in self.members.items()}
        now_called = {old: name for name, old in self.renamed.items()}
        taken = sorted(before.keys() & self.renamed.keys() & departures.keys())
        triggers += [(DEPARTED[departures[name]], name, None) for name in taken]
        before = {name: fields for name, fields in before.items() if name not in taken}
        before = {now_called.get(name, name): fields for name, fields in before.items()}
        for name in before.keys() | after.keys():
            old, new = before.get(name), after.get(name)
            if old is None:
                triggers.append(("member_joined", name, None))
            elif new is None:
                triggers.append((DEPARTED[departures[name]], name, None))
            else:
                subscribes = set(old.get("subscriptions") or ()) != set(new.get("subscriptions") or ())
                # The first description of a member is one change.
                is_first = not old.keys() & {"subscriptions", "strategies"}
                if subscribes:
                    triggers.append(("subscription_changed", name, None))
                if self.lists_differ(old.get("strategies"), new.get("strategies")) and not (subscribes and is_first):
                    triggers.append(("strategy_changed", name, None))
        now = self.shared()
        if before:
            named = now.get("strategy")
            is_named = named != settings.get("strategy")
            if is_named and self.effective(before, settings) != qualified_name(named, self.system):
                triggers.append(("strategy_changed", None, None))
            names = ("strategy_settings", "mode")
            if any(settings.get(name) != now.get(name) for name in names):
                triggers.append(("settings_changed", None, None))
        subscribed = {topic for fields in before.values() for topic in fields.get("subscriptions") or ()}
        triggers += [("queue_count_changed", None, topic) for topic in grown & subscribed]
        if self.follows_up:
            triggers.append(("cooperative_follow_up", None, None))
            self.follows_up = False
        return triggers

    def lists_differ(self, old: list[str] | None, new: list[str] | None) -> bool:
        """Return whether a member lists other strategies; outside Kafka, naming the default changes nothing."""
        if old is None and self.system != "kafka":
            return self.effective({"": {"strategies": new}}, {}) != SYSTEMS[self.system].default_strategy
        return old != new

    def effective(self, members: dict[str, dict[str, Any]], settings: dict[str, Any]) -> str | None:
        """Return the strategies that these members would use; only clustering members allocate."""
        if settings.get("mode", "clustering") != "clustering":
            return qualified_name(settings.get("strategy") or SYSTEMS[self.system].default_strategy, self.system)
        try:
            return chosen_strategy(self.system, settings.get("strategy"), members)
        except NoAnswer:
            return None

    def rebalance(self, at: int, triggers: list[Trigger], members_before: int, renames: list[Any]) -> None:
        topics = self.topics.at(at)
        members = {name: member.fields() for name, member in self.members.items()}
        mode = self.shared()["mode"]
        old, status = self.held, "completed"
        owned_before = self.held if self.reported is None else self.reported
        try:
            self.strategy, self.held = self.answer(mode, members, topics, former_ids(renames))
        except NoAnswer:
            named = self.shared().get("strategy")
            self.strategy, status = named and qualified_name(named, self.system), "failed"
            current = {
                (topic, queue["broker"], queue["queue_id"]) for topic, queues in topics.items() for queue in queues
            }
            self.held = {
                name: [queue for queue in queues if queue in current] for name, queues in old.items() if name in members
            }
        for member in self.members.values():
            member.described.pop("owned", None)
            member.is_new = False
        earlier, self.revoked = self.revoked, []
        if self.strategy == "kafka.cooperative-sticky" and status == "completed":
            free = set(wanted_queues(members, topics)) - owners(self.held).keys()
            self.revoked = [
                queue for queue in sorted(free, key=repr) if queue in owners(owned_before) or queue in earlier
            ]
        elif status == "failed" or not members:  # they keep waiting
            self.revoked = [queue for queue in earlier if queue not in owners(self.held)]
        self.open_spans(at, "computed", under_former_ids(self.held, renames))
        queues = len(wanted_queues(members, topics))
        self.row = row = {
            "cluster": self.cluster, "group_id": self.name, "event_time": at, "generation": self.generation,
            "generation_source": "counted", "trigger": self.main(triggers),
            "triggers": sorted(triggers, key=repr), "strategy": self.strategy, "leader": None, "mode": mode,
            "status": status, "members_before": members_before, "members_after": len(members),
            "queues_before": self.queues_before, "queues_after": queues,
            **compared(owners(old), owners(self.held)), **self.balance(members, topics, self.held),
            "generations_missed": None, **self.agreement_of_reports(at, status, mode),
        }  # fmt: skip
        self.queues_before, self.set_empty = queues, False
        self.tables.rebalances.append(row)
        self.find(at, row)
        for when, former, name in renames:
            self.rename_spans(when, former, name)
        self.begin_to_report(at)
        self.compare_new(at)

    def main(self, triggers: list[Trigger]) -> str:
        """Return the main trigger."""
        return min((kind for kind, _, _ in triggers), key=ORDER.index)

    def answer(
        self,
        mode: str,
        members: dict[str, dict[str, Any]],
        topics: dict[str, list[dict[str, Any]]],
        former: dict[str, str],
    ) -> tuple[str | None, Held]:
        named = self.shared().get("strategy")
        if not members:
            return named and qualified_name(named, self.system), {}
        owned = self.held if self.reported is None else self.reported
        strategy, held = allocate(
            group=self.name, system=self.system, mode=mode, named=named, topics=topics,
            members={former.get(name, name): fields for name, fields in members.items()},
            owned={former.get(name, name): queues for name, queues in owned.items()},
            stayed={former.get(name, name) for name in members if not self.members[name].is_new},
        )  # fmt: skip
        return strategy, {name: held[former.get(name, name)] for name in members}

    def balance(
        self, members: dict[str, dict[str, Any]], topics: dict[str, list[dict[str, Any]]], held: Held
    ) -> dict[str, int]:
        counts = [len(held.get(name, ())) for name, fields in members.items() if fields.get("subscriptions")]
        is_owned = self.shared()["mode"] != "message"
        unassigned = set(wanted_queues(members, topics)) - owners(held).keys()
        return {
            "idle_members": counts.count(0) if is_owned else 0,
            "unassigned_queues": len(unassigned) if is_owned else 0,
            "spread": max(counts, default=0) - min(counts, default=0),
        }

    def finish(self) -> None:
        """Write what is open at the end."""
        self.tables.spans += self.spans.values()
        self.tables.findings += self.findings.values()
        self.tables.members += [self.session(name, member) for name, member in self.members.items()]
        if self.row is not None:
            self.tables.groups.append(self.now(self.row))
        elif self.is_listed:  # it was observed, but never had a member
            self.tables.groups.append(dict.fromkeys(GROUP) | {
                "cluster": self.cluster, "group_id": self.name, "state": "empty",
                "mode": self.shared()["mode"], "strategy": self.strategy_set(), "members": 0, "queues": 0,
                "idle_members": 0, "unassigned_queues": 0, "spread": 0,
            })  # fmt: skip

    def now(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return the row of ``groups``."""
        state = "empty" if not row["members_after"] else "failed" if row["status"] == "failed" else "stable"
        return {
            "cluster": self.cluster, "group_id": self.name, "state": state,
            "mode": row["mode"] if row["members_after"] or not self.set_empty else self.shared()["mode"],
            "strategy": row["strategy"] if row["members_after"] or not self.set_empty else self.strategy_set(),
            "generation": row["generation"],
            "generation_source": row["generation_source"], "members": row["members_after"],
            "queues": row["queues_after"],
            **{name: row[name] for name in ("idle_members", "unassigned_queues", "spread")},
            "last_rebalance_at": row["event_time"],
        }  # fmt: skip
