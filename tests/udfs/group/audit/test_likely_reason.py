"""Each reason why a reported assignment is not the recomputed one, of a history that gives it."""

from __future__ import annotations

from random import Random
from typing import Any
from uuid import UUID

import pytest

from tests.udfs.group.group_script import Script, assigned
from udfs.group.audit.likely_reason import MAX_QUEUES_RECOMPUTED, named
from udfs.model.audits import Audited
from udfs.model.events import QueueInfo, QueueRef

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


def test_another_library() -> None:
    # Java puts static members first, librdkafka and Java before 2.4 go by ids.
    describe = {"b": {"instance_id": "z"}}
    audit = audit_of(assigned(a="0 1", b="2 3"), describe=describe, leader="a")
    assert audit.reason == "another_library"
    assert audit.detail == (
        "The reported assignment is exactly what results as java-2.3 assigns, or as librdkafka assigns,"
        " or as aiokafka assigns, or as sarama assigns."
    )
    assert (audit.queues_differing, audit.unexpected_owner) == (4, 4)


def test_racks_ignored() -> None:
    racks = tuple(QueueInfo(number, None, rack) for number, rack in enumerate(["y", "y", "x", "x"]))
    describe = {"a": {"rack": "x"}, "b": {"rack": "y"}}
    audit = audit_of(
        assigned(a="0 2", b="1 3"), strategy="sticky", queues=None, topic={"queues": racks}, describe=describe
    )  # type: ignore[arg-type]
    assert audit.reason == "racks_ignored"


def test_stale_metadata_of_the_leader() -> None:
    audit = audit_of(assigned(a="0", b="1"))
    assert audit.reason == "stale_metadata"
    assert [(one.queue_id, one.kind, one.reported) for one in audit.differing] == [
        (1, "unexpected_owner", ["b"]),
        (2, "missing", []),
        (3, "missing", []),
    ]


def owning(**owned: str) -> dict[str, dict[str, Any]]:
    """Spell what members claim to have owned in generation 1."""
    return {
        member: {"owned": tuple(QueueRef("t", int(one)) for one in numbers.split()), "owned_generation": 1}
        for member, numbers in owned.items()
    }


def second_generation(assignments: dict[str, list[tuple[str, int]]], **owned: str) -> Audited:
    """Return the audit of a sticky generation after one in which a had 0 and 3, b 1 and 2."""
    script = Script("kafka")
    script.queues(0, "t", 4)
    script.snapshot(10, 1, BOTH, assigned(a="0 3", b="1 2"), strategy="sticky", describe=owning(a="0 3", b="1 2"))
    script.snapshot(20, 2, BOTH, assignments, strategy="sticky", describe=owning(**owned))
    return script.run(100).audits()[-1]


def test_ownership_ignored() -> None:
    audit = second_generation(assigned(a="0 2", b="1 3"), a="0 3", b="1 2")
    assert (audit.verdict, audit.reason) == ("differs", "ownership_ignored")
    assert [one.queue_id for one in audit.differing] == [2, 3]


def test_other_ownership_than_members_claim() -> None:
    audit = second_generation(assigned(a="0 3", b="1 2"), a="0 1", b="2 3")
    assert (audit.verdict, audit.reason) == ("differs", "other_ownership")


def test_wrong_ownership_is_named_though_the_leader_followed_the_claims() -> None:
    audit = second_generation(assigned(a="0 1", b="2 3"), a="0 1", b="2 3")
    assert (audit.verdict, audit.reason) == ("differs", "wrong_ownership")
    assert audit.detail == "a, b claimed queues of other members; the leader assigned by these claims."
    assert [(one.queue_id, one.expected, one.reported) for one in audit.differing] == [
        (1, ["b"], ["a"]),
        (3, ["a"], ["b"]),
    ]


def test_true_ownership_is_no_difference() -> None:
    assert second_generation(assigned(a="0 3", b="1 2"), a="0 3", b="1 2").verdict == "agrees"


def test_another_strategy() -> None:
    audit = audit_of(assigned(a="0 2", b="1 3"))
    assert (audit.reason, audit.detail) == (
        "another_strategy",
        "The reported assignment is exactly what results by kafka.cooperative-sticky, or by kafka.roundrobin,"
        " or by kafka.sticky.",
    )


def test_a_custom_strategy_is_what_is_left() -> None:
    audit = audit_of(assigned(a="0 3", b="1 2"))
    assert audit.reason == "custom_strategy"
    assert audit.detail == (
        "Computed again for other reasons (another_library, another_strategy), it is never what is reported."
    )


def test_a_group_with_very_many_queues_is_not_computed_again() -> None:
    queues = MAX_QUEUES_RECOMPUTED + 2
    swapped = {"a": [("t", one) for one in range(1, queues)], "b": [("t", 0)]}
    assert audit_of(swapped, queues=queues).reason == "unexplained"


# ---- members that assign each for itself


def rocketmq(strategy: str = "AVG") -> Script:
    """Return a group of a and b, with 4 queues, that has settled on its first generation."""
    script = Script("rocketmq")
    script.queues(0, "t", 4)
    script.settings(1, strategy=strategy)
    script.poll(10, "a", "b")
    script.holds(20, "a", [("t", 0), ("t", 1)])
    script.holds(20, "b", [("t", 2), ("t", 3)])
    return script


def test_members_that_have_not_followed() -> None:
    script = rocketmq()
    script.poll(10_000, "a", "b", "c")
    script.holds(12_000, "c", [])
    audit = script.run(100_000).audits()[-1]
    assert (audit.verdict, audit.reason) == ("differs", "not_followed")
    assert audit.detail == "b, c hold exactly what results with the members before this generation."
    assert script.row().strategy_verdict == "proven", "it says nothing of the strategy"


def test_members_that_do_not_know_new_queues() -> None:
    script = rocketmq()
    script.queues(10_000, "t", 8)
    audit = script.run(200_000).audits()[-1]
    assert (audit.verdict, audit.reason, audit.missing) == ("differs", "stale_metadata", 4)


def test_a_member_that_reports_nothing() -> None:
    script = rocketmq()
    script.queues(10_000, "t", 8)
    script.holds(20_000, "a", [("t", one) for one in range(4)])
    script.holds(20_000, "b", [])
    audit = script.run(200_000).audits()[-1]
    assert (audit.reason, audit.detail) == ("owner_holds_nothing", "b report no queue.")
    assert {one.kind for one in audit.differing} == {"missing"}


def test_a_member_that_others_do_not_know() -> None:
    script = Script("rocketmq")
    script.queues(0, "t", 4)
    script.settings(1, strategy="AVG")
    script.poll(10, "a", "b", "c")
    script.holds(20, "a", [("t", 0), ("t", 1)])
    script.holds(20, "b", [("t", 2), ("t", 3)])
    script.holds(20, "c", [("t", 3)])
    audit = script.run(200_000).audits()[-1]
    assert audit.reason == "member_unknown"
    assert audit.detail == "b hold exactly what results as if c were no member."
    assert [(one.queue_id, one.kind) for one in audit.differing] == [(3, "duplicate")]


def test_members_with_another_strategy() -> None:
    script = rocketmq()
    script.holds(30_100, "a", [("t", 0), ("t", 2)])
    script.holds(30_100, "b", [("t", 1), ("t", 3)])
    audit = script.run(200_000).audits()[-1]
    assert (audit.reason, audit.detail) == (
        "another_strategy",
        "a, b hold exactly what results by rocketmq.AVG_BY_CIRCLE, or by rocketmq.CONSISTENT_HASH.",
    )


def test_of_many_members_the_first_are_named() -> None:
    assert named(["b", "a", "d", "c", "e"]) == "a, b, c and 2 more"


@pytest.mark.parametrize("number", range(8))
def test_an_order_by_hash_is_no_reason_for_two_members_with_exchanged_queues(number: int) -> None:
    # Older versions of sarama order members by a hash: by chance, half of all ids would fit.
    chance = Random(number)
    first, second = (f"{name}-{UUID(int=chance.getrandbits(128))}" for name in "ab")
    exchanged = assigned(**{second: "0 1", first: "2 3"})
    audit = audit_of(exchanged, members={first: ["t"], second: ["t"]})
    assert audit.reason == "custom_strategy"
