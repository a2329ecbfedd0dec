"""Core: queues of a group whose commits were deleted. No I/O."""

from __future__ import annotations

import msgspec


class ExpiredQueue(msgspec.Struct, array_like=True):
    """A queue whose commit was deleted.

    Attributes:
        at: When. offset: What it had been. began_at, began: The first commit since; None if there was none.
    """

    at: int
    offset: int
    began_at: int | None = None
    began: int | None = None


class ExpiredCommits(msgspec.Struct, array_like=True):
    """Deleted commits of a group, by topic, broker and number of the queue.

    Attributes:
        evaluate_at: When they are evaluated next; None if nothing but a commit changes them.
    """

    queues: dict[tuple[str, str | None, int], ExpiredQueue]
    evaluate_at: int | None
