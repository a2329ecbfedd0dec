"""A group of the model whose source reports generations: snapshots decide, other events are evidence."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tests.model.allocation import Held, NoAnswer, allocate, compared, owners, wanted_queues
from tests.model.group import Group, Trigger
from tests.model.member import Member, is_bare
from tests.model.reports import former_ids, under_former_ids
from tests.model.rows import BALANCE, Tables
from tests.model.static_members import members_of, replace_absent, under_present_ids
from tests.model.times import METADATA_AGE_MS, Event
from tests.model.topics import Topics
from udfs.strategies.registry import names, qualified_name

TopicQueues = dict[str, list[dict[str, Any]]]


# No client may leave out queues that are older than this.
# Inputs of a generation's computation; members' own reports change none of them.
OF_A_GENERATION = ("subscriptions", "strategies", "instance_id", "rack")


class ReportedGroup(Group):
    """A group that becomes a reported one with its first snapshot that carries a generation."""

    def __init__(self, cluster: str, name: str, system: str, topics: Topics, tables: Tables) -> None:
        super().__init__(cluster, name, system, topics, tables)
        self.reported_generation: int | None = None
        self.counted_generations = 0
        self.reported_up_to = 0  # topics reported up to this time were known to the generation
        self.since = 0  # the current generation's own time
        self.since_before = 0  # the time of the generation before it
        self.shown: dict[str, dict[str, Any]] = {}  # members' descriptions as the generation shows them
        self.counted: dict[str, list[Any]] = {}  # topic -> its queues at the time of the generation
        self.counted_at: dict[str, int] = {}  # topic -> the generation that first showed these queues
        self.left_out: set[str] = set()  # topics that an assignment shows as deleted, but metadata does not
        self.guesses: set[str] = set()  # topics that were unknown when it was computed
        self.is_waiting = False  # no assignment is computed for it yet
        self.topics_then: TopicQueues = {}  # the topics as the generation knew them
        self.renames: list[tuple[int, str, str]] = []  # since the generation began: when, former id, new id
        # Spans that were open before the generation, and those that had ended.
        self.spans_then: tuple[dict[Any, dict[str, Any]], set[int]] = {}, set()
        self.unknown: set[str] = set()  # its topics that still lack metadata
        self.basis: Held = {}  # the assignment that its strategy started from
        self.named: str | None = None
        self.last_strategy: str | None = None
        self.status = "completed"
        self.last_snapshot_at = 0
        self.strangers: set[tuple[str, int]] = set()  # late heartbeats of ids that are not members, once each
        self.is_guessed = False  # the computed assignment is a guess from metadata and the reported one
        # topic -> when metadata showed queues that no generation has shown since
        self.growth: dict[str, list[int]] = {}
        # topic -> the same, whether or not the metadata of all members has shown it meanwhile
        self.resized: dict[str, list[int]] = {}

    # ---- evidence

    def event_time(self, at: int, events: list[Event], grown: set[str]) -> None:
        if self.reported_generation is None and not any(is_generation(event) for event in events):
            super().event_time(at, events, grown)
            return
        if self.reported_generation is not None:
            self.note_expiries(at)
            first_shown = self.unknown
            self.learn(at)
            grown = grown - first_shown
            for topic in grown & self.subscribed(self.fields()):
                self.growth.setdefault(topic, []).append(at)
                self.resized.setdefault(topic, []).append(at)
            if self.row is not None and self.members and grown & self.subscribed(self.fields()):
                self.show_growth()
        self.beats = {event["member_id"] for event in events if is_bare(event)}
        before = [event for event in events if not is_generation(event)]
        for event in [event for event in before if event["type"] in ("group_settings", "group_deleted")]:
            self.witness(at, event)
        for event in [event for event in events if is_generation(event)]:
            if not self.is_repeat(event):
                self.on_generation(at, event, [other for other in before if other["type"] == "member_left"])
        for event in [event for event in before if event["type"] not in ("group_settings", "group_deleted")]:
            self.witness(at, event)
        self.compare_new(at)
        if self.reported_generation is not None and not self.unknown:
            self.outlast_metadata(at)

    def beyond(self, counted: dict[str, int], at: int | None = None) -> int:
        """Return how many queues metadata shows beyond those of a generation by a time; None: by the last growth."""
        mine = self.resized.keys() & self.subscribed(self.fields())
        more = 0
        for topic in mine:
            times = [time for time in self.resized[topic] if at is None or time <= at]
            if times:
                now = self.topics.at(max(times) if at is None else at)
                more += max(0, len(now.get(topic, ())) - counted.get(topic, 0))
        return more

    def show_growth(self) -> None:
        counts = {topic: len(names) for topic, names in self.counted.items()}
        queues = sum(counts.values()) + self.beyond(counts)
        more = queues - self.row["queues_after"]
        self.row = self.row | {
            "queues_after": queues, "unassigned_queues": max(0, self.row["unassigned_queues"] + more),
        }  # fmt: skip

    def wakes(self) -> set[int]:
        """Return also the times at which the metadata of all members must show a growth.

        While a topic has no metadata the generation is not known as a whole, and neither is what it leaves out.
        """
        if self.reported_generation is None or self.unknown:
            return super().wakes()
        return super().wakes() | {grown_at + METADATA_AGE_MS for times in self.growth.values() for grown_at in times}

    def outlast_metadata(self, at: int) -> None:
        """Count queues that no generation has assigned, though the metadata of all members must show them."""
        due = {topic for topic, times in self.growth.items() if min(times) + METADATA_AGE_MS <= at}
        for topic in due:
            self.growth[topic] = [grown_at for grown_at in self.growth[topic] if grown_at + METADATA_AGE_MS > at]
        self.growth = {topic: times for topic, times in self.growth.items() if times}
        now, members = self.topics.at(at), self.fields()
        grown = {name for name in due & self.counted.keys() if len(now.get(name, ())) > len(self.counted[name])}
        if not grown or not members or self.row is None:
            return
        topics = {
            topic: now.get(topic, []) if topic in grown else now.get(topic, [])[: len(names)]
            for topic, names in self.counted.items()
        }
        row = self.row | self.balance(members, topics, self.held if self.reported is None else self.reported)
        more = self.beyond({topic: len(queues) for topic, queues in topics.items()})
        self.row = row | {
            "queues_after": len(wanted_queues(members, topics)) + more,
            "unassigned_queues": row["unassigned_queues"] + more,
        }  # fmt: skip
        for kind in ("unassigned_queues", "idle_members"):
            if not self.revoked:
                self.finding(at, kind, bool(row[kind]))

    def witness(self, at: int, event: Event) -> None:
        """Take in events that no generation has shown yet."""
        if self.is_repeat(event):
            return
        name = event.get("member_id", "")
        match event["type"]:
            case "member_joined" | "heartbeat" if name in self.members:
                member = self.members[name]
                member.last, member.lives_by = max(member.last, at), "heartbeats"
                member.leave_event_at = None
                own = {field: value for field, value in event.items() if field not in OF_A_GENERATION}
                self.describe(member, own, event["event_time"])
            case "assignment_reported":
                self.take_report(at, event)
            case "member_left" if name in self.members:
                self.members[name].leave_event_at = max(
                    at, self.members[name].leave_event_at or at
                )  # the newest counts
            case "group_deleted":
                self.delete(at, event["event_time"])

    def delete(self, at: int, own: int) -> None:
        """End everything of a group that is deleted; ``own``: the time of the deletion."""
        for name in sorted(self.members):
            self.depart(name, at, "gone")
        self.end_sessions({})
        self.close_spans(at, ())
        for kind in list(self.findings):
            self.finding(at, kind, False)
        self.held, self.queues_before, self.reported = {}, 0, None
        self.unknown, self.counted, self.strategy = set(), {}, None
        self.growth, self.resized = {}, {}
        self.reported_generation, self.generation = None, self.counted_generations
        self.has_rows = True  # if only as a generation without members
        self.forget(at, own)

    def note_expiries(self, clock: int) -> None:
        """Note sessions that ended before a time: no generation has shown their end, but it was applied."""
        for member in self.members.values():
            deadline = max(member.last + self.timeout(member), member.not_before)
            is_over = member.lives_by == "heartbeats" and member.leave_event_at is None and deadline < clock
            if is_over and deadline >= (self.last_applied or 0):
                self.last_applied = self.expired_at = deadline

    def deadlines(self) -> dict[str, int]:
        return super().deadlines() if self.reported_generation is None else {}

    # ---- generations

    def on_generation(self, at: int, event: Event, goodbyes: list[Event], is_late: bool = False) -> None:
        number, own = event["generation"], event["event_time"]
        self.last_applied = max(at, self.last_applied or 0)
        is_older, self.last_snapshot_at = own < self.last_snapshot_at, max(own, self.last_snapshot_at)
        event = under_present_ids(self, event)
        reported = members_of(event)
        self.is_polled = True
        last = self.reported_generation
        if self.pending is not None:
            self.settle()
        if self.has_rows and last == number and is_older:  # newer generations have shown the rest
            for name, info in reported.items():
                if name in self.members:
                    self.describe(self.members[name], info | {"subscriptions": None}, own)
            return
        if self.has_rows and last == number:
            self.take_returns(at, reported, ())
        if self.has_rows and last == number and reported.keys() == self.members.keys():
            for name, info in reported.items():
                self.describe(self.members[name], info | {"subscriptions": None}, own)
            if event.get("assignments") is not None:
                self.reported = self.reported_by(event)
                self.open_spans(at, "reported", self.reported)
                self.reporters |= self.members.keys()
                self.is_compared = False
            return
        if number == 0 and not reported and not self.members:
            self.reported_generation = 0
            return
        if last is None:
            self.counted_generations = self.generation
            self.last_strategy, self.shown = self.strategy, self.fields()
            topics = self.topics.at(at - 1)
            self.counted = {
                topic: names_of(topics[topic]) for topic in self.subscribed(self.shown) if topics.get(topic)
            }
        self.since_before = self.since
        for goodbye in goodbyes:
            if goodbye["member_id"] in self.members:
                self.members[goodbye["member_id"]].leave_event_at = at
        absent = self.members.keys() - reported.keys()
        back = self.take_returns(
            at, reported, {member_id for member_id in absent if self.has_departed(self.members[member_id], at)}
        )
        before = {name: member.fields() for name, member in self.members.items()}
        subscribed = self.subscribed(before)
        learned = self.learned(at, event.get("assignments"), subscribed)
        triggers = self.membership_changes(at, reported)
        triggers += self.description_changes(at, before, self.fields(), event.get("assignments"))
        named = event.get("strategy")
        if named and before and self.last_strategy not in (None, qualified_name(named, self.system)):
            triggers.append(("strategy_changed", None, None))
        subscribed &= self.subscribed(self.fields())
        self.left_out &= subscribed if event.get("assignments") is not None else set()
        triggers += self.count_changes(at, event.get("assignments"))
        if not triggers and event.get("assignments") is not None and named in ("range", "cooperative-sticky"):
            triggers = self.deletions(at, event["assignments"], subscribed, is_cooperative=named != "range")
        if self.has_rows and last is not None and number <= last:
            triggers.append(("coordinator_changed", None, None))
        if is_late:
            triggers.append(("late_evidence", None, None))
        shown = event.get("assignments") or {}
        reported = {(queue["topic"], None, queue["queue_id"]) for name in self.members for queue in shown.get(name, ())}
        if before and reported.intersection(self.revoked):
            triggers.append(("cooperative_follow_up", None, None))
        missed = None
        if not self.has_rows:
            triggers.append(("group_created", None, None))
        elif last and number > last + 1:
            missed = number - last - 1
        changed = {topic for kind, _, topic in triggers if kind == "queue_count_changed"}
        kept = (self.growth.keys() & subscribed) - changed
        self.growth = {topic: self.growth[topic] for topic in kept}
        self.resized = {topic: times for topic, times in self.resized.items() if topic in subscribed - changed}
        self.has_rows, self.generation = True, number
        self.reported_generation, self.since, self.last_applied = number, at, at
        # The return of a static member makes a generation only if its join differs from the one before.
        triggers = triggers or learned or [("subscription_changed", name, None) for name in back]
        self.write(at, event, triggers or [("unexplained", None, None)], len(before), missed)

    def take_returns(self, at: int, reported: dict[str, Any], departed: Collection[str]) -> list[str]:
        """Continue the sessions of static members that a generation shows under new ids; return these ids."""
        self.renamed = {}
        replace_absent(self, at, reported, departed)
        self.end_sessions({})
        self.renames += [(at, old, name) for name, old in self.renamed.items()]
        for name, old in self.renamed.items():
            self.shown[name] = self.shown.pop(old, {})
            self.members[name].shown_at = at
        return sorted(self.renamed)

    def has_departed(self, member: Member, at: int) -> bool:
        """Return whether a member that a generation lacks is known to have departed."""
        return self.departure(member, at)[0] != "member_gone"

    def membership_changes(self, at: int, reported: dict[str, Any]) -> list[Trigger]:
        triggers: list[Trigger] = []
        for name in sorted(self.members.keys() - reported.keys()):
            kind, when, reason = self.departure(self.members[name], at)
            triggers.append((kind, name, None))
            self.depart(name, when, reason)
        self.end_sessions({})
        for name, info in reported.items():
            if name not in self.members:
                triggers.append(("member_joined", name, None))
                self.join(at, name, "snapshots")
            self.members[name].shown_at = at
            self.describe(self.members[name], info, at)
        self.members = {name: self.members[name] for name in reported}  # ties of strategies depend on the leader's list
        return triggers

    def departure(self, member: Member, at: int) -> tuple[str, int, str]:
        """Return how a member departed that a generation lacks: by its own leave, otherwise by its silence."""
        if member.leave_event_at is not None and member.leave_event_at <= at:
            return "member_left", member.leave_event_at, "left"
        deadline = max(member.last + self.timeout(member), member.not_before)
        if member.lives_by == "heartbeats" and member.shown_at <= deadline < at:
            return "session_expired", deadline, "expired"
        return "member_gone", at, "absent_from_snapshot"

    def description_changes(
        self,
        at: int,
        before: dict[str, dict[str, Any]],
        after: dict[str, dict[str, Any]],
        assignments: dict[str, Any] | None,
    ) -> list[Trigger]:
        assigned = {queue["topic"] for held in (assignments or {}).values() for queue in held}
        triggers: list[Trigger] = []
        for name in before.keys() & after.keys():
            for field, kind in (("subscriptions", "subscription_changed"), ("strategies", "strategy_changed")):
                was, now = set(self.shown.get(name, {}).get(field) or ()), set(after[name].get(field) or ())
                if was != now:
                    is_match = field == "subscriptions" and was < now and len(now - was) == 1
                    is_match = is_match and self.topics.newest(now - was, was, at, assigned) is not None
                    triggers.append((kind, name, next(iter(now - was)) if is_match else None))
        return triggers

    def learned(self, at: int, reported: dict[str, Any] | None, subscribed: set[str]) -> list[Trigger]:
        """Return the topics of which the last generation assigned nothing, and this one does: new, or learned late."""
        if reported is None or self.reported is None or self.assigned_at < self.since:
            return []
        if self.last_strategy == "kafka.cooperative-sticky" and self.revoked:
            return []
        named = {queue["topic"] for held in reported.values() for queue in held} & subscribed
        triggers: list[Trigger] = []
        for topic in sorted(named - {queue[0] for queues in self.reported.values() for queue in queues}):
            made_at = self.topics.newest([topic], subscribed - {topic}, at)
            is_new = made_at is not None and made_at > self.since
            if self.last_strategy == "kafka.cooperative-sticky" and not self.counted.get(topic):
                continue
            triggers.append(("queue_count_changed" if is_new else "topic_learned", None, topic))
        return triggers

    def count_changes(self, at: int, reported: dict[str, Any] | None) -> list[Trigger]:
        """Return the topics with other queues than in the last generation; a topic that is new to it does not count."""
        now, triggers = self.topics_at(at, reported or {}), []
        named = {queue["topic"] for held in (reported or {}).values() for queue in held}
        subscribed = {topic for fields in self.fields().values() for topic in fields.get("subscriptions") or ()}
        for topic in sorted(subscribed & self.counted.keys()):
            if not (self.counted[topic] or self.topics.counts_as_reported(topic, at) or topic in named):
                continue  # the topic has no metadata, and this generation shows no queue of it
            if self.counted[topic] != names_of(now.get(topic, [])):
                triggers.append(("queue_count_changed", None, topic))
        if self.reported is not None and self.last_strategy != "kafka.cooperative-sticky":
            # The leader assigned all queues that it knew: queues that are named only now were created since.
            held_before = {topic for queues in self.reported.values() for topic, _, _ in queues}
            topics = self.topics.at(at)
            subscribed &= {topic for fields in self.shown.values() for topic in fields.get("subscriptions") or ()}
            new = named & subscribed - self.counted.keys() - topics.keys() - held_before
            triggers += [("topic_learned", None, topic) for topic in sorted(new)]
        return triggers

    def deletions(
        self, at: int, reported: dict[str, Any], subscribed: set[str], *, is_cooperative: bool
    ) -> list[Trigger]:
        """Return the topics of which an assignment lacks queues that it had, without any other explanation."""
        now = {(queue["topic"], None, queue["queue_id"]) for held in reported.values() for queue in held}
        deleted = {queue[0] for queues in (self.reported or {}).values() for queue in queues if queue not in now}
        found = []
        for topic in sorted(deleted & subscribed & self.topics.at(at).keys()):
            kept = [number for topic_held, _, number in now if topic_held == topic]
            moving = is_cooperative and (kept or topic in {queue[0] for queue in self.revoked})
            if not moving and max(kept, default=-1) + 1 < len(self.counted.get(topic, ())):
                found.append(topic)
        self.left_out |= set(found)
        return [("queue_count_changed", None, topic) for topic in found]

    # ---- rows

    def write(self, at: int, event: Event, triggers: list[Trigger], members_before: int, missed: int | None) -> None:
        members = self.fields()
        reported = event.get("assignments")
        topics = self.topics_then = self.topics_at(at, reported or {})
        if not members and self.reported is not None:
            reported = {}
        before, before_reported = self.held, self.reported
        self.basis = self.held if before_reported is None else before_reported
        self.named = event.get("strategy")
        self.shown, self.renames = members, []
        self.reported_up_to = max(at, self.topics.floor)
        self.is_guessed = reported is not None
        self.compute(members, topics, at)
        self.spans_then = dict(self.spans), {id(span) for span in self.tables.spans}
        self.open_spans(at, "computed", self.held, inferred=self.unknown)
        counts = {topic: len(topics[topic]) for topic in self.subscribed(members) & topics.keys()}
        more = self.beyond(counts, at)
        queues = len(wanted_queues(members, topics))
        row = {
            "cluster": self.cluster, "group_id": self.name, "event_time": at, "generation": self.generation,
            "generation_source": "reported", "trigger": self.main(triggers), "triggers": sorted(triggers, key=repr),
            "strategy": self.strategy, "leader": event.get("leader"), "mode": self.shared()["mode"],
            "status": self.status, "members_before": members_before, "members_after": len(members),
            "queues_before": self.queues_before,
            "queues_after": queues + more,
            "generations_missed": missed, "agrees": None, "queues_differing": None,
        }  # fmt: skip
        if reported is None:
            row |= compared(owners(before), owners(self.held)) | self.balance(members, topics, self.held)
        else:
            self.reported = self.reported_by(event)
            row |= compared(owners(before if before_reported is None else before_reported), owners(self.reported))
            row |= self.balance(members, topics, self.reported) | self.agreement()
            self.open_spans(max(at, self.changed_at), "reported", self.reported)
        if self.is_waiting and queues and reported is None:  # nothing is computed yet
            row |= dict.fromkeys(BALANCE, 0)
        judged, row = row, row | {"unassigned_queues": row["unassigned_queues"] + more}
        held_before = owners(before if before_reported is None else before_reported)
        held_now = owners(self.reported or {})
        # A move that a join interrupts goes on, and so does a move of which a generation shows nothing.
        continues = reported is None or any(kind == "member_joined" for kind, _, _ in triggers)
        waiting = [queue for queue in self.revoked if continues]
        if reported is not None:
            waiting = [queue for queue in [*waiting, *held_before] if queue not in held_now]
        is_cooperative = self.strategy == "kafka.cooperative-sticky" and members
        if members:
            there = set(wanted_queues(members, topics))
            self.revoked = [queue for queue in waiting if is_cooperative and queue in there]
        counted = {topic: names_of(topics[topic]) for topic in self.subscribed(members) & topics.keys()}
        kept = {topic for topic in counted if counted[topic] == self.counted.get(topic)}
        # Earlier assignments do not prove queues that newer metadata lacks.
        held = [queue for queues in (self.reported or {}).values() for queue in queues] + self.revoked
        lost = {topic for topic, _, number in held if topic in counted and number >= len(counted[topic])}
        kept_at = {topic: self.counted_at.get(topic, self.since_before if topic in lost else at) for topic in counted}
        self.counted_at = {topic: kept_at[topic] if topic in kept | lost else at for topic in counted}
        self.counted = counted
        self.last_strategy = self.strategy or self.last_strategy
        self.queues_before = queues
        since = self.beyond(counts) - more
        self.row = row | {
            "queues_after": row["queues_after"] + since, "unassigned_queues": row["unassigned_queues"] + since,
        }  # fmt: skip
        self.tables.rebalances.append(row)
        self.find(at, judged)
        self.begin_to_report(at, () if reported is None else self.members)

    def reported_by(self, event: Event) -> Held:
        """Return the whole assignment that a snapshot reports."""
        reported, own = event.get("assignments") or {}, event["event_time"]
        newer = {name: held for name, held in (self.reported or {}).items() if self.newest_report.get(name, 0) > own}
        self.assigned_at = own
        self.newest_report = {name: max(own, self.newest_report.get(name, 0)) for name in self.members}
        held = {name: [(queue["topic"], None, queue["queue_id"]) for queue in held] for name, held in reported.items()}
        return {name: queues for name, queues in (held | newer).items() if name in self.members}

    def topics_at(self, at: int, reported: dict[str, Any]) -> TopicQueues:
        """Return the topics at a time; an assignment that names more partitions than metadata is evidence too."""
        named_counts: dict[str, tuple[int, int]] = {}  # topic -> number of partitions, and the time of that number
        for held in reported.values():
            for queue in held:
                topic, count = queue["topic"], queue["queue_id"] + 1
                if count > named_counts.get(topic, (0, 0))[0]:
                    named_counts[topic] = (count, at)
        topics = self.topics.at(at)
        for held in [
            *(self.reported or {}).values(),
            self.revoked if self.row and self.row["members_after"] else [],
        ]:  # the assignment of the generation before is evidence too, as of its time
            for topic, _, number in held:
                has_ended = not self.counted.get(topic) and self.topics.counts_as_reported(topic, at)
                if has_ended or topic not in self.subscribed(self.shown):
                    continue
                if number >= named_counts.get(topic, (0, 0))[0]:
                    named_counts[topic] = (number + 1, self.counted_at.get(topic, self.since_before))
        for topic, (count, since) in named_counts.items():
            queues = topics.get(topic, [])
            if len(queues) < count and self.topics.changed_at(topic, at) <= since <= at:
                more = range(len(queues), count)
                topics[topic] = queues + [{"broker": None, "queue_id": number, "racks": None} for number in more]
        named = [queue for held in reported.values() for queue in held]
        for topic in self.left_out:
            number = max((queue["queue_id"] for queue in named if queue["topic"] == topic), default=-1) + 1
            topics[topic] = [
                {"broker": None, "queue_id": number_in_topic, "racks": None} for number_in_topic in range(number)
            ]
        for topic, before in self.counted.items():
            numbers = [queue["queue_id"] for queue in named if queue["topic"] == topic]
            is_new = self.topics.changed_at(topic, at) > at - METADATA_AGE_MS
            if is_new and numbers and max(numbers) < len(before) < len(topics.get(topic, [])):
                topics[topic] = topics[topic][: len(before)]  # the generation does not show the new queues yet
        return topics

    def subscribed(self, members: dict[str, dict[str, Any]]) -> set[str]:
        return {topic for fields in members.values() for topic in fields.get("subscriptions") or ()}

    def compute(self, members: dict[str, dict[str, Any]], topics: TopicQueues, at: int) -> None:
        """Run the strategy once every subscribed topic is known; until then members keep their queues."""
        self.unknown = {topic for topic in self.subscribed(members) if not self.topics.counts_as_reported(topic, at)}
        self.guesses = self.unknown
        current = set(wanted_queues(members, topics))
        self.status, named = "completed", self.named or self.shared().get("strategy")
        # The first half of a move does not name the queues that are still to be revoked.
        is_half = named == "cooperative-sticky" and any(not topics.get(topic) for topic in self.unknown)
        self.is_waiting = bool(self.unknown) and (not self.is_guessed or is_half)
        if not members:
            self.strategy, self.held = None, {}
            return
        former = former_ids(self.renames)  # members voted and owned queues under the ids that they had then
        try:
            self.strategy, held = allocate(
                group=self.name, system=self.system, mode=self.shared()["mode"], named=named,
                members={former.get(name, name): fields for name, fields in members.items()},
                topics=topics, owned=self.basis,
            )  # fmt: skip
            held = {name: held[former.get(name, name)] for name in members}
        except NoAnswer as failure:
            self.strategy = named and qualified_name(named, self.system)
            if self.strategy is not None and self.strategy not in names():  # a custom strategy cannot be recomputed
                self.held, self.unknown, self.guesses = {}, set(), set()
                return
            self.status, held = f"failed {failure}"[:6], {}
        if self.is_waiting or self.status == "failed":
            held = {
                name: [queue for queue in queues if queue in current]
                for name, queues in self.held.items()
                if name in members
            }
        self.held = held

    def agreement(self) -> dict[str, Any]:
        if self.reported is None or self.is_waiting or self.status != "completed" or self.strategy not in names():
            return {"agrees": None, "queues_differing": None}
        computed, reported = owners(self.held), owners(self.reported)
        differing = sum(
            computed.get(member_id, set()) != reported.get(member_id, set())
            for member_id in computed.keys() | reported.keys()
        )
        if self.guesses & self.topics_then.keys():  # a guess proves nothing
            return {"agrees": None, "queues_differing": None}
        return {"agrees": not differing, "queues_differing": differing}

    def differing(self) -> int | None:
        if self.is_waiting:
            return None
        if self.unknown and (not self.is_guessed or self.guesses & self.topics_then.keys()):
            return None  # a guess proves nothing
        return super().differing()

    # ---- topics that become known later

    def learn(self, at: int) -> None:
        """Compute the current generation, from its own time on, once the last of its topics is known."""
        waited = self.unknown
        if not waited or self.row is None:
            return
        first = {topic: self.topics.first(topic, at) for topic in waited}
        self.unknown = {topic for topic, queues in first.items() if not queues}
        if self.unknown == waited:
            return
        members = self.fields()
        topics = dict(self.topics_then)
        for topic in self.subscribed(members):
            first = self.topics.first(topic, at)
            if first is not None and not self.topics.was_reported(topic, self.reported_up_to):
                named = [
                    queue
                    for queue in topics.get(topic, [])
                    if queue["queue_id"] not in {described["queue_id"] for described in first}
                ]
                topics[topic] = sorted(first + named, key=lambda queue: queue["queue_id"])
        for topic in waited - self.unknown:
            self.counted[topic] = names_of(topics[topic])
        self.queues_before = len(wanted_queues(members, topics))
        counts = {topic: len(names) for topic, names in self.counted.items()}
        row = self.row | {"queues_after": self.queues_before + self.beyond(counts)}
        if not self.unknown:
            before = owners(self.held)
            self.compute(members, topics, at)
            self.unknown, self.guesses = set(), set()
            if owners(self.held) != before or not self.has_spans():
                self.write_anew()
            held = self.held if self.reported is None or not self.is_guessed else self.reported
            row |= self.balance(members, topics, held)
            row |= self.agreement() if self.reporters >= self.members.keys() else {}
            self.find(at, row, anew=True)
            row["unassigned_queues"] += self.beyond(counts)
        self.row = row

    def has_spans(self) -> bool:
        return any(span["valid_from"] >= self.since for key, span in self.spans.items() if key[0] == "computed")

    def write_anew(self) -> None:
        """Write the generation's computed spans from its own time on, under the ids that members had then."""
        open_then, ended_then = self.spans_then
        mine = ("computed", self.cluster, self.name)
        self.tables.spans = [
            span
            for span in self.tables.spans
            if id(span) in ended_then or (span["origin"], span["cluster"], span["group_id"]) != mine
        ]
        reported = {key: span for key, span in self.spans.items() if key[0] != "computed"}
        self.spans = reported | {key: span for key, span in open_then.items() if key[0] == "computed"}
        self.open_spans(self.since, "computed", under_former_ids(self.held, self.renames), inferred=None)
        for at, old, new in self.renames:
            self.rename_spans(at, old, new, "computed")


def is_generation(event: Event) -> bool:
    """Return whether it is a snapshot of a reported generation."""
    return event["type"] == "group_snapshot" and event.get("generation") is not None


def names_of(queues: list[dict[str, Any]]) -> list[Any]:
    """Return the names of queues: the same queues in other racks do not explain a generation."""
    return [(queue["broker"], queue["queue_id"]) for queue in queues]
