"""Each reason why a reported assignment is not the recomputed one, of a history that gives it."""

from __future__ import annotations

from random import Random
from typing import Any
from uuid import UUID

import pytest

from tests.udfs.group.group_script import Script, assigned
from udfs.group.audit.likely_reason import MAX_QUEUES_RECOMPUTED, named
from udfs.model.audits import Audited

BOTH = {"a": ["t"], "b": ["t"]}


def audit_of(
    assignments: dict[str, list[tuple[str, int]]], *, strategy: str = "range", queues: int = 4, **fields: Any
) -> Audited:
    """Return the audit of a group's first generation."""
    script = Script("kafka")
    script.queues(0, "t", queues, **fields.pop("topic", {}))
    members = fields.pop("members", BOTH)
    script.snapshot(10, 1, members, assignments, strategy=strategy, **fields)
    [audit] = script.run(100).audits()
    assert audit.verdict == "differs"
    return audit


def test_a_group_with_very_many_queues_is_not_computed_again() -> None:
    queues = MAX_QUEUES_RECOMPUTED + 2
    swapped = {"a": [("t", number) for number in range(1, queues)], "b": [("t", 0)]}
    assert audit_of(swapped, queues=queues).reason == "unexplained"


# ---- members that assign each for itself


def test_the_first_of_many_members_are_named() -> None:
    assert named(["b", "a", "d", "c", "e"]) == "a, b, c and 2 more"


@pytest.mark.parametrize("number", range(8))
def test_an_order_by_hash_is_no_reason_for_two_members_with_exchanged_queues(number: int) -> None:
    # Older versions of sarama order members by a hash: by chance, half of all ids would fit.
    chance = Random(number)
    first, second = (f"{name}-{UUID(int=chance.getrandbits(128))}" for name in "ab")
    exchanged = assigned(**{second: "0 1", first: "2 3"})
    audit = audit_of(exchanged, members={first: ["t"], second: ["t"]})
    assert audit.reason == "custom_strategy"
