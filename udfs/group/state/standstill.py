"""Core: the open finding that queues of a group stand. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from udfs.model.finding_names import FindingNames

if TYPE_CHECKING:
    from udfs.group.state.group import Group


class Standstill(msgspec.Struct, array_like=True):
    """An open finding that queues stand.

    Attributes:
        kind: The finding's key. looked_at: The last evaluation. waiting: How many messages waited at ``counted_at``,
            when its message was last written. digest: CRC-32 of the queues that stand.
    """

    kind: str
    looked_at: int
    waiting: int
    counted_at: int
    digest: int
    message: str
    names: FindingNames


def open_standstill(group: Group) -> Standstill | None:
    """Return the open standstill of a group; None if there is none, or if it was closed with the group's findings."""
    found = group.standstill
    return found if found is not None and found.kind in group.findings else None
