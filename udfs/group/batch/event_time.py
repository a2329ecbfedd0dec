"""Core: a group before the events of one time, and what they changed: only what differs in the end counts. No I/O."""

from __future__ import annotations

import msgspec

from udfs.group.state.group import Group, Member
from udfs.group.state.view import GroupView, Settings
from udfs.model.config import CoreConfig
from udfs.model.group_api import GroupInput, GroupOutput, TopicsView
from udfs.model.journal import Body, MemberReplaced, Trigger, TriggerKind
from udfs.model.spans import QueuesReassigned

# What a description changes -> the field that has it.
DESCRIBED: dict[TriggerKind, str] = {
    "subscription_changed": "subscriptions",
    "strategy_changed": "strategies",
    "settings_changed": "strategy_settings",
}


class BeforeEventTime:
    """What is remembered of a group while the events of one time are applied.

    Attributes:
        members: The former state of each member that these events touched; None: it was no member.
        objects: The members themselves, to distinguish one that stayed from one that came back.
        settings: The group's settings before; None: not touched.
        renamed: Members that were replaced by another id at this time: the last id -> the one before all events.
        new_ids: Those among the last ids that were no members before.
        exempt: Members that were replaced by another id, which both report: their changes never cancel out.
        repeated: Causes of this time that were causes of what is pending already.
        triggers, changed_at, changes: How many causes and changes had been written, and the newest change's time.
        last_applied: The time of the last change or snapshot before.
    """

    def __init__(self, group: Group, changes: int) -> None:
        self._group = group
        self.members: dict[str, Member | None] = {}
        self.objects: dict[str, Member] = {}
        self.settings: Settings | None = None
        self.exempt: set[str] = set()
        self.renamed: dict[str, str] = {}
        self.new_ids: set[str] = set()
        self.repeated: list[Trigger] = []
        self.triggers = 0 if group.pending is None else len(group.pending.triggers)
        self.changed_at = 0 if group.pending is None else group.pending.changed_at
        self.last_applied = group.last_applied
        self.changes = changes

    def note_member(self, member_id: str) -> None:
        """Keep a member as it is before the first of these events that touches it."""
        if member_id in self.members:
            return
        member = self._group.members.get(member_id)
        self.members[member_id] = None if member is None else msgspec.structs.replace(member)
        if member is not None:
            self.objects[member_id] = member

    def joined(self, member_id: str) -> bool:
        """Return whether a member was none before."""
        return member_id in self.members and self.members[member_id] is None and member_id not in self.exempt

    def rename(self, former_id: str, member_id: str) -> None:
        """Note that a member has another id now, as the group has it."""
        if self.joined(former_id):
            self.members.setdefault(member_id, None)
        else:
            self.exempt |= {former_id, member_id}
            self.members.setdefault(former_id, msgspec.structs.replace(self._group.members[member_id]))
            if self.members.get(member_id) is None:
                self.new_ids.add(member_id)
            self.renamed[member_id] = self.renamed.pop(former_id, former_id)

    def described(self, member_id: str) -> Member | None:
        """Return a member as it was described before, under whichever id; None: no member, or not touched."""
        return self.members.get(self.renamed.get(member_id, member_id)) or self.members.get(member_id)


class EventTimeView(GroupView):
    """One group through one batch, with what this event time has changed so far, for functions that change nothing.

    Attributes:
        output: What is written.
        before: The group before the events of this time.
        awaited_before: The generation that waited for topics when the batch began.
    """

    def __init__(self, group: Group, facts: GroupInput, topics: TopicsView, config: CoreConfig) -> None:
        super().__init__(group, facts, topics, config)
        self.output = GroupOutput()
        self.before = BeforeEventTime(group, 0)
        self.awaited_before = group.awaited
        self._first_change = 0  # the first change of this time, even if the group is deleted at it
        self._earlier_spans: list[QueuesReassigned | MemberReplaced] | None = []

    def changes_of_now(self) -> list[Body]:
        """Return what was written at this event time so far."""
        return [change.body for change in self.output.changes[self.before.changes :]]

    def computed_spans_of_now(self, at: int) -> list[QueuesReassigned | MemberReplaced] | None:
        """Return what became of computed spans at this time so far; None: some of it is in batches before.

        A pending rebalance of an earlier time may have been decided in between: it is none of it.
        """
        if self._earlier_spans is None:
            return None
        bodies = [change.body for change in self.output.changes[self._first_change :] if change.event_time == at]
        return self._earlier_spans + [
            body
            for body in bodies
            if isinstance(body, MemberReplaced) or (isinstance(body, QueuesReassigned) and body.origin == "computed")
        ]
