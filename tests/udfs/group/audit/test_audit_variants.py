"""One generation computed again in other ways."""

from __future__ import annotations

from tests.core_config import core_config
from tests.udfs.group.group_script import T0, Script, assigned
from udfs.group.assignment.target_assignment import topics_with_metadata
from udfs.group.audit.audit_variants import (
    LIBRARIES,
    Basis,
    as_owned_before,
    false_claims,
    held_by,
    leader_variants,
    member_variants,
    recomputed,
)
from udfs.group.state.view import GroupView
from udfs.group.state.writing import assign
from udfs.model.events import QueueRef
from udfs.model.group_api import GroupInput


def view_of(script: Script, at: int) -> tuple[GroupView, Basis]:
    facts = GroupInput(
        cluster="c", system=script.system, group_id="g", clock_before=None, clock=T0 + at, detected_at=0, events=[]
    )
    view = GroupView(script.group, facts, script.topics, core_config())
    since = script.group.last_rebalance_at or 0
    topics = topics_with_metadata(view, T0 + at)
    return view, Basis(topic_queues=topics, strategy=script.group.last_strategy, since=since, generation=2)


def kafka(strategy: str = "range", **describe: dict[str, object]) -> Script:
    script = Script("kafka")
    script.queues(0, "t", 4)
    both = {"a": ["t"], "b": ["t"]}
    script.snapshot(10, 1, both, assigned(a="0 1", b="2 3"), strategy=strategy, describe=describe)
    return script.run(20)


def test_a_generation_is_computed_again_as_it_was() -> None:
    script = kafka()
    view, basis = view_of(script, 20)
    assert recomputed(view, basis) == script.group.computed


def test_a_leader_may_be_another_library_or_strategy_or_know_less() -> None:
    view, basis = view_of(kafka("sticky", a={"rack": "r"}), 20)
    tried = list(leader_variants(view, basis, "kafka.sticky", {("t", None, 1): ("a",)}))
    assert [variant.reason for variant in tried[: len(LIBRARIES) + 4]] == [
        "racks_ignored",
        *["another_library"] * len(LIBRARIES),
        "stale_metadata",
        "ownership_ignored",
        "other_ownership",
    ]
    others = [variant.text for variant in tried if variant.reason == "another_strategy"]
    assert others == ["by kafka.cooperative-sticky", "by kafka.range", "by kafka.roundrobin"]


def test_a_leader_may_know_fewer_queues() -> None:
    view, basis = view_of(kafka(), 20)
    tried = leader_variants(view, basis, "kafka.range", {("t", None, 1): ("a",)})
    stale = next(variant for variant in tried if variant.reason == "stale_metadata")
    assert stale.text == "with the queues that the assignment names (t: 2 of 4)"
    assert sorted(stale.compute() or {}) == [("t", None, 0), ("t", None, 1)]


def test_a_coordinator_that_assigns_has_no_client_library() -> None:
    view, basis = view_of(kafka("server.range"), 20)
    tried = list(leader_variants(view, basis, "kafka.server.range", script_owners := view.group.reported))
    assert script_owners
    assert [(variant.reason, variant.text) for variant in tried] == [("another_strategy", "by kafka.server.uniform")]


def test_members_may_still_act_by_what_was_before() -> None:
    script = Script("rocketmq")
    script.queues(0, "t", 4)
    script.poll(10, "a", "b")
    script.queues(20, "t", 6)
    script.poll(20, "a", "c")
    view, basis = view_of(script.run(30), 30)
    tried = list(member_variants(view, basis, "rocketmq.AVG"))
    assert [variant.reason for variant in tried if variant.reason != "another_strategy"] == [
        "stale_metadata",
        "not_followed",
        "not_followed",
        "member_unknown",
        "member_unknown",
    ]
    both_before = next(
        variant for variant in tried if variant.text == "with the members and the queues before this generation"
    )
    before = held_by(both_before.compute() or {}, ["a", "b", "c"])
    assert before == {"a": {("t", None, 0), ("t", None, 1)}, "b": {("t", None, 2), ("t", None, 3)}, "c": set()}


def test_a_claim_is_false_where_the_generation_before_gave_the_queue_to_another() -> None:
    script = kafka("sticky")
    view, basis = view_of(script, 20)
    member, former = script.group.members["b"], script.group.reported
    assign(member, owned=(QueueRef("t", 0), QueueRef("t", 1)), owned_generation=1)
    assert false_claims(view, 2, former) == ["b"]
    assert false_claims(view, 3, former) == [], "it names a generation that was not before this one"
    assert false_claims(view, 2, {("t", None, 0): ("b",)}) == []
    honest = as_owned_before(view, basis, ["b"])
    assert honest == former
    assert recomputed(view, basis) != former
