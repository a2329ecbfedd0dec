"""Core: what a group remembers of queues that stand, that nobody reads, or whose commits are amiss. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from udfs.model.finding_names import FindingNames

if TYPE_CHECKING:
    from udfs.group.state.group import Group


class Standstill(msgspec.Struct, frozen=True, array_like=True):
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


class UnreadQueues(msgspec.Struct, frozen=True, array_like=True):
    """Queues of subscribed topics that nobody reads.

    Attributes:
        since: Since when nobody reads each of them, by topic, broker and number.
        evaluated_at: When the finding was last evaluated; None if it is not open. message, names: The finding.
    """

    since: Mapping[tuple[str, str | None, int], int]
    evaluated_at: int | None = None
    message: str = ""
    names: FindingNames = FindingNames()


class Committer(NamedTuple):
    """Who may have committed a queue, by the group's state then.

    Attributes:
        had_members: Whether the group had members; None if none are known. owner: The id of the queue's only owner.
            name: Its name, with its host. since: Since when it holds its queues, or the group has no members. None
            where that is not known.
    """

    had_members: bool | None
    owner: str | None = None
    name: str = ""
    since: int | None = None


class BackQueue(msgspec.Struct, frozen=True, array_like=True):
    """A queue whose commit went back, until it has passed what it had been.

    Attributes:
        before_at, before: The highest commit before. at: When a lower one first followed. after: The lowest since.
        last_at: When it last went back. times: How often it did. by: Who may have committed it.
    """

    before_at: int
    before: int
    at: int
    after: int
    last_at: int
    times: int
    by: Committer


class CommitsBack(msgspec.Struct, frozen=True, array_like=True):
    """An open finding that commits of a group went back: the queues, by topic, broker and number.

    Attributes:
        evaluated_at: The last evaluation.
    """

    queues: Mapping[tuple[str, str | None, int], BackQueue]
    evaluated_at: int


class ExpiredQueue(msgspec.Struct, frozen=True, array_like=True):
    """A queue whose commit was deleted.

    Attributes:
        at: When. offset: What it had been. began_at, began: The first commit since; None if there was none.
    """

    at: int
    offset: int
    began_at: int | None = None
    began: int | None = None


class ExpiredCommits(msgspec.Struct, frozen=True, array_like=True):
    """Deleted commits of a group, by topic, broker and number of the queue.

    Attributes:
        evaluate_at: When they are evaluated next; None if nothing but a commit changes them.
    """

    queues: Mapping[tuple[str, str | None, int], ExpiredQueue]
    evaluate_at: int | None
