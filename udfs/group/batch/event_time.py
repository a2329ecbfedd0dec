"""Core: a group before the events with one timestamp, and what these have noted so far. No I/O."""

from __future__ import annotations

import msgspec

from udfs.group.state.group import Group, Member
from udfs.group.state.view import Settings
from udfs.model.journal import MemberClosed, Trigger, TriggerKind

# A change of a description -> the field that holds the value.
DESCRIBED: dict[TriggerKind, str] = {
    "subscription_changed": "subscriptions",
    "strategy_changed": "strategies",
    "settings_changed": "strategy_settings",
}


class BeforeEventTime:
    """The state of a group before the events with the current timestamp, and what these have noted so far.

    Attributes:
        folds: The net effect of these events counts: sessions are written once all of them are applied.
        members: The former state of each member that these events touched; None if it was not a member.
        settings: The group's settings before; None if not touched.
        causes: The causes that these events gave. ends, began: The ends of each member's sessions; the members whose
            session began, each with the id that it had before. changed: The members that were described anew.
        renamed: Members that were replaced by another id at this time: the last id -> the id before all events.
        exempt: Members that were replaced by another id and that report under both: their changes never cancel out.
    """

    def __init__(self, group: Group, *, folds: bool = False) -> None:
        self._group = group
        self.folds = folds
        self.members: dict[str, Member | None] = {}
        self.settings: Settings | None = None
        self.causes: list[Trigger] = []
        self.ends: dict[str, list[MemberClosed]] = {}
        self.began: dict[str, str | None] = {}
        self.changed: set[str] = set()
        self.exempt: set[str] = set()
        self.renamed: dict[str, str] = {}

    def note_member(self, member_id: str) -> None:
        """Keep a member's state before the first of these events that touches it."""
        if member_id not in self.members:
            member = self._group.members.get(member_id)
            self.members[member_id] = None if member is None else msgspec.structs.replace(member)

    def rename(self, former_id: str, member_id: str) -> None:
        """Record that a member now has another id in the group."""
        if self.members.get(former_id, True) is not None or former_id in self.exempt:
            self.exempt |= {former_id, member_id}
            self.members.setdefault(former_id, msgspec.structs.replace(self._group.members[member_id]))
            self.renamed[member_id] = self.renamed.pop(former_id, former_id)
        self.members.setdefault(member_id, None)

    def described(self, member_id: str) -> Member | None:
        """Return a member's description before, under whichever id; None if it was not a member, or not touched."""
        return self.members.get(self.renamed.get(member_id, member_id)) or self.members.get(member_id)
