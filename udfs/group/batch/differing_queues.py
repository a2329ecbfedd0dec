"""Core: a sentence about queues whose owners are not the computed ones. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from udfs.group.batch.finding_texts import differing_text
from udfs.model.finding_names import NamedQueue


def differing_sentence(queues: Sequence[NamedQueue], total: int, shown: Mapping[str, str]) -> str:
    """Return which queues have no owner, several owners, or another owner than computed; without a full stop.

    Args:
        queues: The first of the differing queues, with their computed and their reported owners; at least one.
        total: Number of all differing queues. shown: The members' names in sentences, by their ids.

    Example:
        >>> without, other = NamedQueue("t", None, 0, "a"), NamedQueue("t", "b", 1, "a", None, ("b",))
        >>> differing_sentence([without], 1, {})
        '1 queue has no owner, though the strategy gives it one: t-0: nobody instead of a'
        >>> differing_sentence([other], 7, {})
        '1 queue has another owner than the strategy computes: t@b-1: b instead of a; and 6 more queues differ'
    """
    parts = [
        _part(
            [queue for queue in queues if not queue.owners],
            "has no owner, though the strategy gives it one",
            "have no owner, though the strategy gives one",
            shown,
        ),
        _part([queue for queue in queues if len(queue.owners) > 1], "has several owners", "have several owners", shown),
        _part(
            [queue for queue in queues if len(queue.owners) == 1],
            "has another owner than the strategy computes",
            "have other owners than the strategy computes",
            shown,
        ),
    ]
    more = total - len(queues)
    left = f"and {more} more queues differ" if more > 1 else "and one more queue differs" if more else ""
    return "; ".join(part for part in (*parts, left) if part)


def _part(queues: Sequence[NamedQueue], singular: str, plural: str, shown: Mapping[str, str]) -> str:
    if not queues:
        return ""
    number = f"1 queue {singular}" if len(queues) == 1 else f"{len(queues)} queues {plural}"
    return f"{number}: {differing_text(queues, len(queues), shown)}"
