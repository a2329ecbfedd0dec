"""What a group's own strategy computes from known topics and described members."""

from __future__ import annotations

import pytest

from tests.udfs.group.group_script import Script, assigned
from udfs.model.events import CommitsDeleted, QueueRef


def test_kafka_members_vote_for_the_first_common_strategy() -> None:
    """The published example: range, 2 to 1."""
    script = Script()
    script.join(10, "c1", strategies=("range", "roundrobin", "custom"))
    script.join(10, "c2", strategies=("range", "roundrobin", "sticky"))
    script.join(10, "c3", strategies=("roundrobin", "range", "sticky"))
    assert script.run(20).rebalances[0].strategy == "kafka.range"


def test_a_member_that_was_never_described_holds_nothing_and_fails_no_vote() -> None:
    script = Script()
    script.queues(0, "t", 2)
    script.join(10, "a", strategies=("roundrobin",))
    script.beat(20, "b")
    script.run(30)
    assert [(row.status, row.strategy) for row in script.rebalances] == [("completed", "kafka.roundrobin")] * 2
    assert script.owners(25) == {"t/0": "a", "t/1": "a"}


def test_without_a_common_strategy_the_rebalance_fails_and_present_members_keep_what_they_held() -> None:
    script = Script()
    script.queues(0, "t", 4)
    script.join(10, "a", strategies=("range",))
    script.join(10, "b", strategies=("range",))
    script.join(20, "c", strategies=("roundrobin",))
    script.leave(30, "b")
    script.queues(40, "t", 1)
    script.run(50)
    assert [row.status for row in script.rebalances] == ["completed", "failed", "failed", "failed"]
    assert script.rebalances[1].error == "no_common_strategy: no strategy is listed by every member"
    assert script.spans() == ["t/0 a 10..", "t/1 a 10..40", "t/2 b 10..30", "t/3 b 10..30"]
    assert "strategy_failed 20.." in script.findings()
    assert script.row().state == "failed"


DISJOINT = {"a": {"strategies": ("range",)}, "b": {"strategies": ("roundrobin",)}}


def test_a_failed_generation_ends_the_spans_of_queues_that_it_does_not_have_though_metadata_does() -> None:
    script = Script()
    script.queues(0, "t", 2)
    script.snapshot(10, 1, {"a": ["t"]}, assigned(a="0 1"), strategy="range")
    script.event(CommitsDeleted, 15, queues=(QueueRef("t", 0),))
    script.snapshot(20, 2, {"a": ["t"]}, assigned(a="0 1"), strategy="range")
    script.snapshot(30, 3, {"a": ["t"], "b": ["t"]}, assigned(a="0"), DISJOINT)
    script.run(40)
    assert (script.rebalances[-1].status, script.rebalances[-1].queues_after) == ("failed", 1)
    assert script.owners(30) == {"t/0": "a"}


def test_a_failed_generation_with_a_topic_without_metadata_keeps_the_queues_of_the_others() -> None:
    script = Script()
    script.queues(0, "t", 2)
    script.snapshot(10, 1, {"a": ["t"]}, assigned(a="0 1"), strategy="range")
    script.snapshot(20, 2, {"a": ["t", "u"], "b": ["t"]}, assigned(a="0 1"), DISJOINT)
    script.run(30)
    assert script.rebalances[-1].status == "failed"
    assert script.spans() == ["t/0 a 10..", "t/1 a 10.."]


def test_an_unknown_strategy_fails_with_its_name() -> None:
    script = Script("rocketmq")
    script.settings(0, strategy="acme")
    script.join(10, "a")
    assert script.run(20).rebalances[0].error == "unknown_strategy: there is no strategy rocketmq.acme"


def test_rocketmq_allocates_over_all_members_and_the_slice_of_one_that_does_not_subscribe_has_no_owner() -> None:
    script = Script("rocketmq")
    script.queues(0, "t", 4)
    script.join(10, "a")
    script.join(10, "b", topics=("u",))
    row = script.run(20).rebalances[0]
    assert script.owners(10) == {"t/0": "a", "t/1": "a"}
    assert (row.unassigned_queues, row.idle_members, row.spread) == (2, 1, 2)
    assert script.findings() == ["idle_members 10..", "subscriptions_differ 10..", "unassigned_queues 10.."]


def test_members_with_different_strategies_take_what_their_own_gives_them() -> None:
    """AVG gives a 0 and 1; by circle b takes 1 and 3: queue 1 has two owners, queue 2 none."""
    script = Script("rocketmq")
    script.queues(0, "t", 4)
    script.join(10, "a", strategies=("AVG",))
    script.join(10, "b", strategies=("AVG_BY_CIRCLE",))
    row = script.run(20).rebalances[0]
    assert script.owners(10) == {"t/0": "a", "t/1": "a+b", "t/3": "b"}
    assert row.strategy == "rocketmq.AVG, rocketmq.AVG_BY_CIRCLE"
    assert row.unassigned_queues == 1
    assert "strategies_differ 10.." in script.findings()


def test_members_that_join_again_with_what_they_kept_are_the_second_half_of_a_cooperative_move() -> None:
    script = Script()
    script.queues(0, "t", 4)
    how = {"strategies": ("cooperative-sticky",)}
    script.join(10, "a", **how)
    script.join(20, "b", **how)
    script.join(25, "a", owned=(QueueRef("t", 0), QueueRef("t", 1)))
    script.join(26, "b", owned=())
    script.join(30, "b", owned=(QueueRef("t", 2), QueueRef("t", 3)))
    script.run(40)
    assert script.decided()[1:] == ["20 #2 1->2 member_joined:b", "25 #3 2->2 cooperative_follow_up"]
    assert script.rebalances[2].triggers[0].detail == "2 queues released"
    assert script.owners(22) == {"t/0": "a", "t/1": "a"}
    assert script.owners(25) == {"t/0": "a", "t/1": "a", "t/2": "b", "t/3": "b"}
    assert [one for one in script.findings() if one.startswith("unassigned")] == []


@pytest.mark.parametrize("also", [("t",), ("u",)], ids=["holds some", "holds none"])
def test_a_member_that_reports_what_it_holds_changes_nothing_whatever_others_hold_and_claim(also: tuple[str]) -> None:
    """A claim without a generation is of the last one, as is what silent members held."""
    found = []
    for is_reported in (False, True):
        script = Script()
        script.queues(0, "t", 4)
        how = {"strategies": ("cooperative-sticky",)}
        script.join(10, "a", **how)
        script.join(10, "b", also, **how)
        script.run(15)
        held = tuple(QueueRef("t", int(one[2:])) for one, member in script.owners(10).items() if member == "a")
        if is_reported:
            script.join(20, "a", owned=held)
        script.join(21, "b", owned=(held[0],))  # it never had that one
        script.join(30, "c", **how)
        found.append(script.run(40).owners(30))
    assert found[0] == found[1]


def test_a_strategy_that_the_snapshot_names_is_taken_without_a_vote() -> None:
    script = Script()
    script.queues(0, "t", 2)
    script.snapshot(10, 1, {"a": ["t"], "b": ["t"]}, assigned(a="0", b="1"), strategy="roundrobin")
    script.snapshot(20, 2, {"a": ["t"], "b": ["t"]}, assigned(a="0", b="1"), strategy="range")
    script.run(30)
    assert [row.strategy for row in script.rebalances] == ["kafka.roundrobin", "kafka.range"]
    assert script.decided()[1] == "20 #2 2->2 strategy_changed"


def test_a_strategy_that_cannot_be_recomputed_completes_and_its_computed_spans_end() -> None:
    script = Script()
    script.queues(0, "t", 1)
    script.snapshot(10, 1, {"a": ["t"]}, assigned(a="0"), strategy="range")
    script.snapshot(20, 2, {"a": ["t"]}, assigned(a="0"), strategy="acme.tiers")
    row = script.run(30).rebalances[1]
    assert (row.status, row.error, row.agrees, row.strategy) == (
        "completed",
        "not_recomputable",
        None,
        "kafka.acme.tiers",
    )
    assert script.spans() == ["t/0 a 10..20"]
    assert script.spans("reported") == ["t/0 a 10.."]


def test_a_strategy_of_their_own_for_which_members_voted_is_not_recomputable_either() -> None:
    script = Script()
    script.queues(0, "t", 1)
    script.snapshot(10, 1, {"a": ["t"], "b": ["t"]}, describe={"a": {"strategies": ("acme.tiers", "range")}})
    row = script.run(30).rebalances[0]
    assert (row.status, row.error, row.strategy) == ("completed", "not_recomputable", "kafka.acme.tiers")
    assert script.findings() == []
