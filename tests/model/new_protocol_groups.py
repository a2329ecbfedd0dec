"""Groups of Kafka's new protocol in the model: a coordinator's records in, rows out, one record after the other."""

from __future__ import annotations

from typing import Any

from tests.model.allocation import Held
from tests.model.group import DEPARTED, Trigger
from tests.model.new_protocol_epochs import AWAY, Epoch, RecordedMember, as_sets, in_order, owned_of
from tests.model.new_protocol_rows import NewProtocolRows
from tests.model.times import Event


class NewProtocolGroup(NewProtocolRows):
    """One group, from its first record on."""

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
                self.members[name].target = in_order(record["partitions"])
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
        member = self.members[name]
        member.described, member.pattern = described, record.get("pattern")
        for sessions in (self.decided, *(epoch.sessions for epoch in self.open)):
            if name in sessions:  # what it subscribes to is shown with an epoch
                sessions[name] = self.session(name, member) | {"subscriptions": sessions[name]["subscriptions"]}

    def former(self, instance_id: str | None) -> str | None:
        found = [name for name, member in self.leaving.items() if member.described.get("instance_id") == instance_id]
        return found[0] if instance_id is not None and found else None

    def take_place(self, at: int, former: str, name: str) -> None:
        """Let a static member go on under a new id."""
        old = self.leaving.pop(former)
        self.close_session(former, old, at, "replaced")
        self.members[name].held, self.members[name].target = set(old.held), list(old.target)
        if former in self.target_before:
            self.target_before[name] = self.target_before.pop(former)
        if not self.open:
            self.rename(at, former, name)
            return
        epoch = self.open[-1]
        self.waiting.append((epoch, at, (former, name)))
        for by_name in (self.shown, epoch.members, epoch.targets or {}):
            if former in by_name:
                by_name[name] = by_name.pop(former)

    def follow(self, at: int, name: str, record: Event) -> None:
        member = self.members[name]
        member.epoch, member.state = record["epoch"], record["state"]
        member.held = owned_of(record["partitions"]) | owned_of(record.get("revoking") or [])
        self.note_held(at)
        self.converge(at)

    def note_held(self, at: int) -> None:
        """Note what members have once all of a time is known; spans of an epoch are written with its row."""
        if not self.open:
            self.open_spans(at, "reported", self.held_now())
            return
        if self.waiting:
            of, when, noted = self.waiting[-1]
            if of is self.open[-1] and when == at and not isinstance(noted, tuple):
                self.waiting.pop()
        self.waiting.append((self.open[-1], at, self.held_now()))

    def held_now(self) -> Held:
        """Return what members hold, those included whose departure no epoch has shown."""
        return {
            name: sorted((self.names.get(topic, topic), None, number) for topic, number in member.held)
            for name, member in {**self.members, **self.leaving}.items()
        }

    # ---- epochs

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
            (
                "subscription_changed",
                name,
                self.matched_topic(name, before[name]["subscriptions"], members[name]["subscriptions"]),
            )
            for name in members.keys() & before.keys()
            if members[name]["subscriptions"] != before[name]["subscriptions"]
        ]
        missed = number - self.epoch - 1 if self.epoch and number > self.epoch + 1 else None
        begun = Epoch(
            number,
            at,
            triggers,
            members,
            len(before),
            missed,
            self.held_now(),
            self.known(at, members),
            bool(triggers),
            number,
        )
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
            for name, fields in newest.members.items():
                fields["strategies"] = list(self.members[name].described.get("strategies") or ())
            if len(self.open) > 1:
                newest.changes |= self.strategy(newest.members) != self.strategy(self.open[-2].members)
            counts = self.shown_by_target(at, newest.members)
            newest.changes |= any(
                counts[topic] != self.targeted[topic] for topic in counts.keys() & self.targeted.keys()
            )
            if len(self.open) > 1 and self.open[-2].targets is not None:
                newest.changes |= as_sets(self.targets()) != as_sets(self.target_before)
            self.settle()
            epoch = self.open[-1]
            epoch.targets = self.targets()
            before, epoch.counts = self.counts, self.shown_by_target(at, epoch.members)
            if epoch.strategy is None:  # an equal target shows no other assignor than that of the first
                epoch.strategy = self.strategy_of_target(epoch, self.target_before)
            self.target_before = dict(epoch.targets)
            for member in self.members.values():
                member.is_new = False
            more = [topic for topic in sorted(before.keys() & epoch.counts) if epoch.counts[topic] != before[topic]]
            epoch.triggers += [("queue_count_changed", None, topic) for topic in more]
            self.counts = self.targeted = epoch.counts
        self.converge(at)

    def settle(self) -> None:
        """Write the rows of the epochs that newer ones have overtaken; one without any change overtakes none."""
        current = self.open[0]
        for newer in self.open[1:]:
            if newer.changes:
                self.write(current, newer.began_at, newer.held)
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

    def shown_by_target(self, at: int, members: dict[str, dict[str, Any]]) -> dict[str, int]:
        """Return the same once the target is there: it may name more than metadata has."""
        counts = self.known(at, members)
        for member in self.members.values():
            for topic, number in member.target:
                name = self.names.get(topic, topic)
                if any(name in fields["subscriptions"] for fields in members.values()):
                    counts[name] = max(counts.get(name, 0), number + 1)
        return counts

    def departure(self, at: int, name: str) -> tuple[str, int]:
        """Return how a member departed whose records are deleted, and when."""
        return self.left.get(name, ("expired" if self.leaving[name].epoch == AWAY else "absent_from_snapshot", at))

    def end_session(self, at: int, name: str) -> None:
        reason, when = self.departure(at, name)
        self.close_session(name, self.leaving.pop(name), when, reason)

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
