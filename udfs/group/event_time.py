"""Core: a group as it was before the events of one time: only what differs after all of them counts. No I/O."""

from __future__ import annotations

import msgspec

from udfs.group.state import Group, Member


class BeforeEventTime:
    """What is remembered of a group while the events of one time are applied.

    Attributes:
        members: Of members that these events touched: their state before; None: no members.
        objects: The members themselves, to tell one that stayed from one that came back.
        settings: The group's settings before; None: not touched.
        exempt: Members that were replaced by another id, which both report: their changes never cancel out.
        triggers, changed_at, changes: How many causes and changes had been written, and the newest change's time.
    """

    def __init__(self, group: Group, changes: int) -> None:
        self._group = group
        self.members: dict[str, Member | None] = {}
        self.objects: dict[str, Member] = {}
        self.settings: object = None
        self.exempt: set[str] = set()
        self.triggers = 0 if group.pending is None else len(group.pending.triggers)
        self.changed_at = 0 if group.pending is None else group.pending.changed_at
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
