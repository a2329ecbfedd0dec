"""Core: which finding follows from which; related findings name each other. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import TypeAlias

import msgspec

from udfs.group.batch.findings import Found
from udfs.model.finding_names import NOT_OWNED, NOT_SUBSCRIBED

_Holds: TypeAlias = Callable[[Found], bool]


def _always(_found: Found) -> bool:
    return True


def _has_reason(reason: str | None) -> _Holds:
    return lambda found: any(queue.reason == reason for queue in found.queues)


# The finding, the finding that it follows from, and whether it does; the first row that holds counts.
_FOLLOWS: tuple[tuple[str, str, _Holds], ...] = (
    ("unassigned_queues", "subscriptions_differ", _has_reason(NOT_SUBSCRIBED)),
    ("unassigned_queues", "strategy_failed", _always),
    ("unassigned_queues", "duplicate_ids", _has_reason(None)),
    ("unassigned_queues", "strategies_differ", _has_reason(None)),
    ("unassigned_queues", "expected_differs", _has_reason(NOT_OWNED)),
    ("expected_differs", "duplicate_ids", _always),
    ("expected_differs", "strategies_differ", _always),
    ("idle_members", "strategy_failed", _always),
    ("flapping", "duplicate_instance", _always),
)


def with_causes(
    evaluated: Sequence[tuple[str, Found | None]], current: Container[str]
) -> list[tuple[str, Found | None]]:
    """Return the rules' findings, each naming the finding that it follows from, both as its key and in words.

    Args:
        evaluated: Findings by kind after the same rebalance; None if not found. current: Keys of findings that were
            open before.
    """
    results = dict(evaluated)

    def is_open(kind: str) -> bool:
        return results[kind] is not None if kind in results else kind in current

    return [(kind, None if found is None else _with_cause(kind, found, is_open)) for kind, found in evaluated]


def _with_cause(kind: str, found: Found, is_open: Callable[[str], bool]) -> Found:
    cause = next((by for effect, by, holds in _FOLLOWS if effect == kind and is_open(by) and holds(found)), None)
    if cause is None:
        return found
    return msgspec.structs.replace(found, caused_by=cause, message=f"{found.message} It follows from {cause}.")
