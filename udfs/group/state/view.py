"""Core: a read-only view of one group in one batch: its state, its input, its topics. No I/O."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Mapping
from operator import attrgetter
from typing import Any, TypeAlias

import msgspec

from udfs.group.state.assignment_diff import Changed, changed_queues
from udfs.group.state.group import Group, Member, Owners
from udfs.group.state.state_machine import GroupKind, kind_of
from udfs.model.clients import client_of, host_of
from udfs.model.config import CoreConfig
from udfs.model.errors import StrategyError
from udfs.model.events import Mode, QueueInfo
from udfs.model.finding_names import NamedMember
from udfs.model.group_api import GroupInput, TopicsView
from udfs.model.member_fields import SHOWN
from udfs.model.systems import SYSTEMS, System, SystemProfile
from udfs.strategies.allocate import own_strategies
from udfs.strategies.registry import qualified_name

_SHOWN = attrgetter(*SHOWN)

# A group's strategies (its own, and the one that polls show) with its system; its mode; its strategy's settings.
Settings: TypeAlias = tuple[tuple[str | None, str | None, System], str, Mapping[str, Any]]


class GroupView:
    """One group during one batch, for functions that compute and change nothing.

    Attributes:
        system: The group's system. profile: The system's peculiarities.
        applied_heartbeats: The last heartbeat that was applied individually, of each member tracked by heartbeats;
            ``last_heartbeat`` adds those of ``facts.heartbeats``.
        reached_at: The time up to which this batch is applied. looked_at, retention_looked_at: The last
            evaluations in it, of standing queues and of those near the starts of their logs.
    """

    def __init__(self, group: Group, facts: GroupInput, topics: TopicsView, config: CoreConfig) -> None:
        self.group = group
        self.facts = facts
        self.topics = topics
        self.config = config
        self.system: System = facts.system
        self.profile: SystemProfile = SYSTEMS[facts.system]
        self.applied_heartbeats: dict[str, int] = dict(facts.last_heartbeat)
        self.reached_at = self.looked_at = self.retention_looked_at = (
            0 if facts.clock_before is None else facts.clock_before - 1
        )
        self._compared: list[tuple[Owners, Owners, list[Changed]]] = []

    def settings_text(self) -> str:
        """Return what is set for the group, as JSON; ``{}`` if nothing is.

        ``strategy``, with ``inferred`` if it was concluded; ``polled``, the strategy that polls show; ``settings``,
        those of its strategy. Its members decide what is not set.
        """
        group = self.group
        values: dict[str, object] = {
            "strategy": group.strategy,
            "inferred": group.strategy_inferred and group.strategy is not None,
            "polled": group.reported_strategy,
            "settings": group.strategy_settings,
        }
        shown = {name: value for name, value in values.items() if value}
        return msgspec.json.encode(shown, order="deterministic").decode()

    def settings_now(self) -> Settings:
        """Return the settings of the group: its strategies (its own, and the one that polls show) and all others."""
        group = self.group
        strategies = (self.strategy_now(), self.polled_strategy(), self.system)
        return (strategies, self.mode, group.strategy_settings or {})

    def polled_strategy(self) -> str | None:
        """Return the strategy that the last poll showed, else the one last used."""
        name = self.group.reported_strategy or self.group.last_strategy
        return None if name is None else qualified_name(name, self.system)

    def strategy_now(self) -> str | None:
        """Return the group's own strategy, else the one last used; None if its members' vote failed.

        While a rebalance is pending, members may differ from those that used the strategy; it still counts as theirs.
        """
        group = self.group
        if group.strategy is None and group.pending is not None and group.members:
            if self.mode != "clustering":
                return qualified_name(self.profile.default_strategy, self.system)  # there is no vote
            try:
                return own_strategies(self.system, group.members.values(), self.config.vote_tie_order)
            except StrategyError:
                return None
        name = group.strategy or group.last_strategy
        if name is None and group.row is not None and group.row.state == "failed":
            return None
        return qualified_name(name or self.profile.default_strategy, self.system)

    @property
    def named_strategy(self) -> str | None:
        """Return the strategy that is set for the group; None if none is set."""
        name = self.group.strategy
        return None if name is None else qualified_name(name, self.system)

    @property
    def kind(self) -> GroupKind:
        """Return the group's kind."""
        return kind_of(self.group, self.system)

    @property
    def shown_state(self) -> str:
        """Return the state for the group's row; for a streams group, which is not followed, its coordinator's state.

        For a streams group that is incomplete, or has no task to assign, it is the row's own state.
        """
        recorded, row = self.group.recorded, self.group.row
        if row is None:
            return "new"
        if recorded is None or recorded.protocol != "streams" or recorded.incomplete or recorded.is_without_tasks:
            return row.state
        return recorded.state

    @property
    def mode(self) -> Mode:
        """Return how queues are shared."""
        return self.group.mode or "clustering"

    def is_quiet(self, topic: str) -> bool:
        """Return whether a topic is assigned like others, but left out of figures and findings."""
        prefix = self.profile.retry_prefix
        return prefix is not None and topic.startswith(prefix)

    def changed_queues(self, before: Owners, after: Owners) -> list[Changed]:
        """Return the differences between two assignments; the result for the last two is cached."""
        for former, latter, changed in self._compared:
            if former is before and latter is after:
                return changed
        changed = changed_queues(before, after)
        self._compared = [*self._compared[-1:], (before, after, changed)]
        return changed

    # ---- time

    def timeout_of(self, member: Member) -> int:
        """Return a member's session timeout."""
        own = member.session_timeout_ms
        return self.config.session_timeouts_ms[self.system] if own is None else own

    def deadline_of(self, member: Member) -> int:
        """Return when a member's session ends, by the heartbeats applied so far.

        Until its timeout changed, the old timeout counted: if the new timeout would have passed already, the session
        ends at the change.
        """
        deadline = self.own_deadline_of(member, self.applied_heartbeats[member.member_id])
        return max(deadline, member.timeout_since or deadline)

    def own_deadline_of(self, member: Member, last: int) -> int:
        """Return when a session ends by its last heartbeat, whenever that became known."""
        deadline = last + self.timeout_of(member)
        return max(deadline, member.field_times.get("session_timeout_ms", deadline))

    def last_heartbeat(self, member_id: str, until: int) -> int:
        """Return the last heartbeat, at or before ``until``, of a member that is tracked by heartbeats."""
        last = self.applied_heartbeats[member_id]
        times = self.facts.heartbeats.get(member_id)
        if times:
            place = bisect.bisect_right(times, until)
            if place:
                last = max(last, times[place - 1])
        return last

    def last_heartbeat_or_none(self, member_id: str, until: int) -> int | None:
        """Return the last heartbeat of any member; None if it never sent one."""
        if member_id in self.applied_heartbeats:
            return self.last_heartbeat(member_id, until)
        return self.group.last_heartbeats.get(member_id)

    def late_before(self) -> int | None:
        """Return the time before which events are late: just after the last change if that was an expiry."""
        group, last = self.group, self.group.last_applied
        if last is None:
            return None
        ended = [departed.left_at for departed in group.departed.values() if departed.left_reason == "expired"]
        ended += [evidence.time for evidence in group.evidence if evidence.kind == "session_expired"]
        return last + 1 if last in ended else last

    # ---- sessions

    def session_of(self, member: Member) -> dict[str, object]:
        """Return a session as the journal writes it."""
        return dict(zip(SHOWN, _SHOWN(member), strict=True)) | {
            "member_id": member.member_id,
            "joined_at": member.joined_at,
            "lives_by": "heartbeats" if member.by_heartbeats else "snapshots",
            "client": self.client_of(member),
            "address": host_of(member.host),
            "session_timeout_ms": self.timeout_of(member) if member.by_heartbeats else member.session_timeout_ms,
        }

    # ---- clients

    def client_of(self, member: Member) -> str:
        """Return a member's client, which stays the same when it comes back under another id; else its id."""
        own = member.client_id
        if own is None and not self.profile.makes_member_ids:
            own = member.name  # it is the client's own
        return client_of(member.instance_id, own, member.host) or member.member_id

    def client_of_id(self, member_id: str) -> str | None:
        """Return the client of a member that is present or departed; None if it is not remembered."""
        member = self.member_of_id(member_id)
        return None if member is None else self.client_of(member)

    def member_of_id(self, member_id: str) -> Member | None:
        """Return a member that is present or departed; None if it is not remembered."""
        member = self.group.members.get(member_id)
        if member is None:
            departed = self.group.departed.get(member_id)
            member = None if departed is None else departed.member
        return member

    def named(self, member: Member, detail: str | None = None) -> NamedMember:
        """Return a member as findings name it."""
        return NamedMember(member.member_id, self.client_of(member), detail)

    def shown_names(self) -> dict[str, str]:
        """Return each member's name in sentences: its client if no other member has it, else its id."""
        clients = {member_id: self.client_of(member) for member_id, member in self.group.members.items()}
        numbers = Counter(clients.values())
        return {member_id: client if numbers[client] == 1 else member_id for member_id, client in clients.items()}

    # ---- topics

    def topics_of_interest(self) -> list[str]:
        """Return the topics whose changes concern the group: sorted, distinct."""
        group = self.group
        recorded = set() if group.recorded is None else group.recorded.topics()
        return sorted(recorded.union(group.current_topics()))

    def queues_at(self, topic: str, at: int) -> tuple[QueueInfo, ...] | None:
        """Return a topic's queues at that time; a partition of Kafka has no broker.

        An epoch may be decided in a later batch: changes are read as far back as they are kept.
        """
        is_past = self.group.recorded is not None and at < (self.facts.clock_before or at)
        past = self.topics.before(topic, at + 1) if is_past else None
        return self._as_named(self.topics.at(topic, at) if past is None else past)

    def queues_before(self, topic: str, at: int) -> tuple[QueueInfo, ...] | None:
        """Return a topic's queues right before a time that may belong to an earlier batch."""
        return self._as_named(self.topics.before(topic, at))

    def topic_id(self, topic: str, at: int) -> str | None:
        """Return a topic's id as in the coordinator's newest target, else as metadata had it then."""
        named = None if self.group.recorded is None else self.group.recorded.ids.get(topic)
        return self.topics.topic_id(topic, at) if named is None else named

    def first_queues(self, topic: str, at: int) -> tuple[QueueInfo, ...] | None:
        """Return the first queues of a topic if it had metadata by then; else None."""
        queues = self.queues_at(topic, at)
        if queues is None or self.topics.at(topic, at - 1) is None:
            return queues
        return self._as_named(self.topics.first_description(topic))

    def _as_named(self, queues: tuple[QueueInfo, ...] | None) -> tuple[QueueInfo, ...] | None:
        if queues is None or self.profile.counts_queues_per_broker or all(queue.broker is None for queue in queues):
            return queues
        # A partition that has moved to another leader was reported under two brokers.
        partitions = {queue.queue_id: queue for queue in reversed(queues)}
        return tuple(
            QueueInfo(number, None, partitions[number].rack, partitions[number].racks) for number in sorted(partitions)
        )
