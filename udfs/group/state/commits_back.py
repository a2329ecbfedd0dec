"""Core: queues of a group whose commits went back. No I/O."""

from __future__ import annotations

from typing import NamedTuple

import msgspec


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


class BackQueue(msgspec.Struct, array_like=True):
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


class CommitsBack(msgspec.Struct, array_like=True):
    """An open finding that commits of a group went back: the queues, by topic, broker and number.

    Attributes:
        evaluated_at: The last evaluation.
    """

    queues: dict[tuple[str, str | None, int], BackQueue]
    evaluated_at: int
