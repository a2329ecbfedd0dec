"""Core: queues whose owners are not those that a strategy computes, as a sentence that says how. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from udfs.group.state.assignment_diff import Changed
from udfs.group.state.group import Queue

_NAMED_AT_MOST: Final = 3


def differing_sentence(differing: Sequence[Changed]) -> str:
    """Return which queues have no owner, which several, and which another one than computed; without a full stop.

    Args:
        differing: Queues with their computed and their reported owners; at least one.

    Example:
        >>> differing_sentence([(("t", None, 0), ("a",), ()), (("t", "b", 1), ("a",), ("b",))])
        '1 queue has no owner, though the strategy gives it one (t-0); 1 queue has another owner than the strategy\
 computes (t@b-1)'
    """
    without = [queue for queue, _, reported in differing if not reported]
    shared = [queue for queue, _, reported in differing if len(reported) > 1]
    other = [queue for queue, _, reported in differing if len(reported) == 1]
    parts = [
        _part(
            without, "has no owner, though the strategy gives it one", "have no owner, though the strategy gives one"
        ),
        _part(shared, "has several owners", "have several owners"),
        _part(other, "has another owner than the strategy computes", "have other owners than the strategy computes"),
    ]
    return "; ".join(part for part in parts if part)


def _part(queues: Sequence[Queue], one: str, many: str) -> str:
    if not queues:
        return ""
    number = f"1 queue {one}" if len(queues) == 1 else f"{len(queues)} queues {many}"
    names = ", ".join(map(_name, queues[:_NAMED_AT_MOST]))
    more = len(queues) - _NAMED_AT_MOST
    return f"{number} ({names} and {more} more)" if more > 0 else f"{number} ({names})"


def _name(queue: Queue) -> str:
    topic, broker, queue_id = queue
    return f"{topic}-{queue_id}" if broker is None else f"{topic}@{broker}-{queue_id}"
