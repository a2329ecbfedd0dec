"""Core: a group as it was before the events of one time: only what differs after all of them counts. No I/O."""

from __future__ import annotations

import msgspec

from udfs.group.state.group import Group, Member
from udfs.group.state.view import Settings
from udfs.model.journal import Trigger, TriggerKind

# What a description changes -> the field that has it.
DESCRIBED: dict[TriggerKind, str] = {
    "subscription_changed": "subscriptions",
    "strategy_changed": "strategies",
    "settings_changed": "strategy_settings",
}


class BeforeEventTime:
    """What is remembered of a group while the events of one time are applied.

    Attributes:
        members: Of members that these events touched: their state before; None: no members.
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
        """Note that a member has another id now, as the group has it; causes of this event time name it so."""
        if self.joined(former_id):
            self.members.setdefault(member_id, None)
        else:
            self.exempt |= {former_id, member_id}
            self.members.setdefault(former_id, msgspec.structs.replace(self._group.members[member_id]))
            if self.members.get(member_id) is None:
                self.new_ids.add(member_id)
            self.renamed[member_id] = self.renamed.pop(former_id, former_id)
        triggers = [] if self._group.pending is None else self._group.pending.triggers
        for place, trigger in enumerate(triggers):
            of_member = trigger.member_id == former_id and (
                trigger.kind == "member_joined" or trigger.kind in DESCRIBED
            )
            if place >= self.triggers and of_member:
                triggers[place] = msgspec.structs.replace(trigger, member_id=member_id)

    def described(self, member_id: str) -> Member | None:
        """Return a member as it was described before, under whichever id; None: none, or not touched."""
        return self.members.get(self.renamed.get(member_id, member_id)) or self.members.get(member_id)
