"""The rebalance of one epoch: what it is compared with, and what it leaves to others."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tests.udfs.group.group_script import T0
from tests.udfs.group.random_coordinator import RandomCoordinator
from tests.udfs.group.record_script import IDS, T_ID, U_ID, RecordScript, partitions
from udfs.model.events import TopicPartitions
from udfs.model.journal import Trigger
from udfs.model.spans import QueueAssigned


def test_an_epoch_is_computed_from_the_target_before_it_not_from_what_members_own() -> None:
    script = RecordScript()
    script.first_member()
    script.second_member()
    script.waiting = [one for one in script.waiting if one.event_time < T0 + 30]  # b never gets its queues
    script.delete_member(40, "b")
    script.epoch(40, 3)
    script.member(41, "c")
    script.epoch(41, 4)
    script.target(41, 4, {"a": "0 1", "c": "2 3"})
    script.current(42, "a", 4, "0 1")
    script.current(43, "c", 4, "2 3")
    script.run(60)
    rows = {row.generation: row for row in script.rebalances}
    assert {number: row.agrees for number, row in rows.items()} == {1: True, 2: True, 3: None, 4: True}
    assert (rows[3].agrees_reason, rows[3].error) == ("no_target", "overtaken by epoch 4")


def test_the_causes_name_the_events_that_described_their_members() -> None:
    script = RecordScript()
    script.first_member()
    described = script.waiting[1].event_id
    assert script.run(20).rebalances[0].triggers[1] == Trigger(
        kind="member_joined", member_id="a", event_id=described, client="a"
    )


def test_a_member_that_subscribes_to_nothing_is_part_of_the_group() -> None:
    script = RecordScript()
    script.member(10, "a", ())
    script.epoch(10, 1)
    script.target(10, 1, {"a": ""})
    script.current(10, "a", 1, "")
    row = script.run(20).rebalances[0]
    assert (row.members_after, row.queues_after, row.agrees) == (1, 0, True)


def grown_with_equal_hashes(held: dict[str, str]) -> RecordScript:
    """Play a topic that grows under members whose ids have one hash; the target of the epoch after it is ``held``."""
    script = RecordScript()
    script.first_member(member="Aa")
    script.member(20, "BB", assignor="server.uniform")
    script.epoch(20, 2)
    script.target(20, 2, {"Aa": "0 1", "BB": "2 3"})
    script.current(21, "Aa", 2, "0 1")
    script.current(22, "BB", 2, "2 3")
    script.queues(40, "t", 5, topic_id=T_ID)
    script.epoch(41, 3)
    script.target(41, 3, held)
    for member, owned in held.items():
        script.current(42, member, 3, owned)
    return script.run(60)


@pytest.mark.parametrize(
    ("held", "agrees"),
    [
        ({"Aa": "0 1", "BB": "2 3 4"}, True),
        ({"Aa": "0 1 4", "BB": "2 3"}, True),
        ({"Aa": "0 1 3 4", "BB": "2"}, False),
    ],
)
def test_members_with_one_place_in_the_coordinators_table_are_in_any_order(held: dict[str, str], agrees: bool) -> None:
    assert grown_with_equal_hashes(held).rebalances[-1].agrees is agrees


def test_queues_that_metadata_shows_later_are_not_in_a_target() -> None:
    script = RecordScript()
    script.first_member()
    script.epoch(20, 2)
    script.target(20, 2, {"a": "0 1 2 3 4"})
    script.queues(25, "t", 6, topic_id=T_ID)
    script.current(30, "a", 2, "0 1 2 3 4")
    script.epoch(31, 3)
    script.target(31, 3, {"a": "0 1 2 3 4 5"})
    script.current(32, "a", 3, "0 1 2 3 4 5")
    assert script.run(60).decided()[1:] == ["30 #2 1->1 queue_count_changed:t", "32 #3 1->1 queue_count_changed:t"]
    assert [row.agrees for row in script.rebalances] == [True, True, True]
    assert [row.queues_after for row in script.rebalances] == [4, 5, 6]


@pytest.mark.parametrize(("before", "held"), [(2, {"a": "0 1 2 3", "b": ""}), (0, {"a": "0 1", "b": "2 3"})])
def test_growth_of_a_topic_is_the_cause_of_the_epoch_with_it_in_the_target(before: int, held: dict[str, str]) -> None:
    """The coordinator bumps the epoch for a member that leaves before it learns what metadata shows already."""
    script = RecordScript(has_offsets=True)
    if before:
        script.queues(0, "u", before, topic_id=U_ID)

    def assigned(at: int, epoch: int, owned: dict[str, tuple[TopicPartitions, ...]]) -> None:
        script.record(at, "target", epoch=epoch)
        for member, given in owned.items():
            script.record(at, "member_target", member_id=member, partitions=given)
        for member, given in owned.items():
            script.record(at, "member_current", member_id=member, epoch=epoch, state="stable", partitions=given)

    script.member(10, "a", ("t", "u"))
    script.member(10, "b", ("t", "u"))
    script.epoch(10, 1)
    of_u = partitions("0 1" if before else "", U_ID)
    assigned(10, 1, {"a": partitions(held["a"]), "b": partitions(held["b"]) + of_u})
    script.queues(20, "u", 3, topic_id=U_ID)
    script.delete_member(21, "b")
    script.epoch(21, 2)
    script.epoch(30, 3)
    assigned(30, 3, {"a": partitions("0 1 2 3") + partitions("0 1 2", U_ID)})
    left, grown = script.run(60).rebalances[1:]
    assert ([one.kind for one in left.triggers], left.agrees_reason) == (["member_gone"], "no_target")
    assert [(one.kind, one.topic, one.detail) for one in grown.triggers] == [
        ("queue_count_changed", "u", f"{before} -> 3")
    ]
    assert (grown.agrees, left.queues_after, grown.queues_before, grown.queues_after) == (True, *[4 + before] * 2, 7)


@pytest.mark.parametrize("returns_at", [40, 50])
def test_a_target_is_computed_for_the_ids_that_static_members_had_then(returns_at: int) -> None:
    # The coordinator's table has a, b, c and d in this order, p before them: who comes first keeps one queue more.
    script = RecordScript()
    script.first_member()
    script.static_second_member()
    script.current(30, "b", 2, "2 3")
    script.current(35, "b", -2, "2 3")
    script.member(40, "c")
    script.epoch(40, 3)
    script.target(40, 3, {"b": "2", "c": "3"} if returns_at == 50 else {"a": "0", "c": "1"})
    script.current(40, "c", 3, "", "unreleased")
    script.current(45, "a", 3, "0 1" if returns_at == 50 else "0")
    script.come_back(returns_at, "b", "p", 3, "2" if returns_at == 50 else "2 3")
    script.current(55, "c", 3, "3" if returns_at == 50 else "1")
    row = script.run(60).rebalances[2]
    assert (row.generation, row.agrees, row.trigger) == (3, True, "member_joined")
    assert script.findings() == []


# What is not compared before a topic has metadata is audited then. Metadata may show a growth before the
# coordinator does.
_VALID = {
    *((True, None), (True, "growth_not_due")),
    *((None, "no_members"), (None, "no_target"), (None, "topics_unknown")),
}


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_every_target_of_a_random_history_is_recomputed_from_the_one_before(first: int) -> None:
    agreed = 0
    for seed in range(first, first + 20):
        script = RecordScript(partitions=None)
        RandomCoordinator(seed, script).run(60)
        found = [(row.generation, row.agrees, row.agrees_reason) for row in script.run(10**6).rebalances]
        assert {one[1:] for one in found} <= _VALID, (seed, found)
        verdicts = [one.verdict for one in script.audits()]
        assert "differs" not in verdicts, (seed, found)
        # Of an epoch that never got a target the next one shows what it does.
        caused = [row.trigger for before, row in pairwise(script.rebalances) if before.agrees_reason != "no_target"]
        assert "unexplained" not in caused, (seed, script.decided())
        agreed += verdicts.count("agrees")
    assert agreed > 100


@pytest.mark.parametrize("first", [0, 1_000])
def test_targets_of_one_millisecond_are_recomputed_in_the_order_of_their_offsets(first: int) -> None:
    agreed = 0
    for seed in range(first, first + 20):
        script = RecordScript(partitions=None, has_offsets=True)
        RandomCoordinator(seed, script, at_once=0.4).run(60)
        found = [(row.generation, row.agrees, row.agrees_reason) for row in script.run(10**6).rebalances]
        assert {one[1:] for one in found} <= _VALID, (seed, found)
        verdicts = [one.verdict for one in script.audits()]
        assert "differs" not in verdicts, (seed, found)
        agreed += verdicts.count("agrees")
    assert agreed > 100


@pytest.mark.parametrize("at_once", [0.0, 0.3, 0.6])
def test_spans_name_the_owners_of_each_time(at_once: float) -> None:
    compared = 0
    for seed in range(20):
        script = RecordScript(partitions=None, has_offsets=True)
        coordinator = RandomCoordinator(seed, script, at_once=at_once)
        coordinator.run(60)
        script.run(10**6)
        # What members own since the last epoch began that they have not converged on is not decided yet.
        decided = max(row.event_time for row in script.rebalances) - T0
        times = [at for at in coordinator.owners if at < decided]
        compared += len(times)
        assert [at for at in times if script.owners(at, "reported") != coordinator.owners[at]] == [], seed
    assert compared > 400


def test_a_static_member_that_comes_back_while_an_epoch_is_open_has_its_new_id_from_then_on() -> None:
    script = RecordScript()
    script.first_member(instance_id="i")
    script.member(20, "b")
    script.epoch(20, 2)
    script.target(20, 2, {"a": "0 1", "b": "2 3"})
    script.current(25, "a", 1, "0 1", "unrevoked", "2 3")
    script.current(30, "a", -2, "0 1")
    script.come_back(40, "a", "p", 2, "0 1")
    script.current(50, "b", 2, "2 3")
    script.run(60)
    assert script.spans("reported") == [
        "t/0 a 10..40", "t/0 p 40..", "t/1 a 10..40", "t/1 p 40..",
        "t/2 a 10..30", "t/2 b 50..", "t/3 a 10..30", "t/3 b 50..",
    ]  # fmt: skip
    assert script.sessions() == ["a 10..40 replaced", "b 20..", "p 40.."]
    assert script.decided()[1:] == ["50 #2 1->2 member_joined:b"]


def test_a_static_member_that_joins_and_comes_back_while_its_epoch_is_open_joined_under_its_first_id() -> None:
    script = RecordScript()
    script.first_member()
    script.static_second_member()
    script.current(30, "b", -2, "2")
    script.come_back(40, "b", "p", 2, "2 3")
    script.run(60)
    assert script.spans("reported")[2:] == [
        "t/2 a 10..25", "t/2 b 30..40", "t/2 p 40..", "t/3 a 10..25", "t/3 p 40..",
    ]  # fmt: skip
    assert script.sessions() == ["a 10..", "b 20..40 replaced", "p 40.."]
    assert script.decided()[1:] == ["40 #2 1->2 member_joined:b"]


def test_a_target_without_queues_shows_that_the_coordinator_had_no_metadata_of_the_topic() -> None:
    script = RecordScript(partitions=None)
    script.member(10, "a")
    script.epoch(10, 1)
    script.target(10, 1, {"a": ""})
    script.current(10, "a", 1, "")
    script.queues(15, "t", 2, topic_id=T_ID)  # a poll, before the coordinator has it
    script.member(20, "b")
    script.epoch(20, 2)
    script.target(20, 2, {"b": ""})
    script.current(20, "b", 2, "")
    script.epoch(30, 3)
    script.target(30, 3, {"a": "0", "b": "1"})
    script.current(31, "a", 3, "0")
    script.current(32, "b", 3, "1")
    rows = script.run(60).rebalances
    causes = [[(one.kind, one.detail) for one in row.triggers if one.kind != "group_created"] for row in rows]
    assert causes == [[("member_joined", None)], [("member_joined", None)], [("queue_count_changed", "0 -> 2")]]
    assert [(row.agrees, row.queues_before, row.queues_after) for row in rows] == [
        (True, 0, 0), (True, 0, 0), (True, 0, 2),
    ]  # fmt: skip
    assert script.spans() == ["t/0 a 32..", "t/1 b 32.."]


def test_a_target_that_gives_out_fewer_queues_is_older_than_the_metadata_that_shows_more() -> None:
    script = RecordScript(partitions=2)
    script.member(10, "a")
    script.epoch(10, 1)
    script.target(10, 1, {"a": "0 1"})
    script.current(10, "a", 1, "0 1")
    script.queues(20, "t", 3, topic_id=T_ID)
    script.member(20, "b")
    script.epoch(20, 2)
    script.target(20, 2, {"a": "0", "b": "1"})
    script.current(21, "a", 2, "0")
    script.current(22, "b", 2, "1")
    script.epoch(30, 3)
    script.target(30, 3, {"a": "0", "b": "1 2"})
    script.current(31, "a", 3, "0")
    script.current(32, "b", 3, "1 2")
    rows = script.run(60).rebalances
    assert [(row.agrees, row.queues_after) for row in rows] == [(True, 2), (True, 2), (True, 3)]
    assert [one.detail for one in rows[2].triggers] == ["2 -> 3"]


def test_a_target_that_follows_one_of_the_same_millisecond_is_not_held_against_the_group() -> None:
    script = RecordScript()
    script.first_member()
    script.member(20, "b")
    script.epoch(20, 2)
    script.target(20, 2, {"a": "0 1", "b": "2 3"})
    script.epoch(20, 3)  # b had two of a's queues for a moment: the next target gives it others
    script.target(20, 3, {"a": "2 3", "b": "0 1"})
    script.current(20, "a", 3, "2 3")
    script.current(25, "b", 3, "0 1")
    row = script.run(60).rebalances[-1]
    assert (row.generation, row.agrees, row.agrees_reason) == (3, None, "ownership_unknown")
    assert script.findings() == []


# What Kafka's ``UniformAssignor`` 4.1.1 answers for equal and for different subscriptions.
EQUAL = {"a": {"t": "0 1 2"}, "b": {"t": "3", "u": "0 1"}}
DIFFERENT = {"a": {"t": "0", "u": "0 1"}, "b": {"t": "1 2 3"}}


@pytest.mark.parametrize(
    ("patterns", "held"),
    [
        ((None, None), EQUAL),
        (("[tu]", "[tu]"), EQUAL),
        ((None, "[tu]"), DIFFERENT),
        (("[tu]", "t|u"), DIFFERENT),
    ],
)
def test_members_that_subscribe_to_the_same_topics_by_other_means_are_differently_subscribed(
    patterns: tuple[str | None, str | None], held: dict[str, dict[str, str]]
) -> None:
    script = RecordScript()
    script.queues(0, "u", 2, topic_id=U_ID)
    for pattern in ("[tu]", "t|u"):
        script.record(5, "pattern", pattern=pattern, topics=("t", "u"))
    targets = [{"a": {"t": "0 1 2 3", "u": "0 1"}}, held]
    for epoch, (member, pattern) in enumerate(zip("ab", patterns, strict=True), 1):
        at = 10 * epoch
        script.member(at, member, topics=() if pattern else ("t", "u"), pattern=pattern)
        script.epoch(at, epoch)
        script.record(at, "target", epoch=epoch)
        for one, topics in targets[epoch - 1].items():
            has = tuple(part for topic in topics for part in partitions(topics[topic], IDS[topic]))
            script.record(at, "member_target", member_id=one, partitions=has)
            script.record(at + 5, "member_current", member_id=one, epoch=epoch, state="stable", partitions=has)
    assert [row.agrees for row in script.run(60).rebalances] == [True, True]


def test_an_order_of_members_is_tried_where_a_topic_has_no_metadata_too() -> None:
    script = RecordScript()
    script.member(10, "Aa", topics=("t", "v"))
    script.epoch(10, 1)
    script.target(10, 1, {"Aa": "0 1 2 3"})
    script.current(10, "Aa", 1, "0 1 2 3")
    script.member(20, "BB", topics=("t", "v"))
    script.epoch(20, 2)
    script.target(20, 2, {"Aa": "0 1", "BB": "2 3"})
    script.current(20, "Aa", 2, "0 1")
    script.current(25, "BB", 2, "2 3")
    script.member(30, "c", topics=("t", "v"))
    script.epoch(30, 3)
    script.target(30, 3, {"Aa": "0", "c": "1"})  # BB was put before Aa
    script.current(30, "Aa", 3, "0")
    script.current(31, "BB", 3, "2 3")
    script.current(35, "c", 3, "1")
    assert [row.agrees for row in script.run(60).rebalances] == [True, True, True]


def by_range(script: RecordScript, **fields: Any) -> RecordScript:
    """Have three members come whose targets are those of range; those of the first two are uniform's, too."""
    script.member(10, "a", **fields)
    script.epoch(10, 1)
    script.target(10, 1, {"a": "0 1 2 3 4"})
    script.current(10, "a", 1, "0 1 2 3 4")
    script.member(20, "b", **fields)
    script.epoch(20, 2)
    script.target(20, 2, {"a": "0 1 2", "b": "3 4"})
    script.current(21, "a", 2, "0 1 2")
    script.current(22, "b", 2, "3 4")
    script.member(30, "0", **fields)
    script.epoch(30, 3)
    script.target(30, 3, {"0": "0 1", "a": "2 3", "b": "4"})
    for member, held in (("a", "2 3"), ("b", "4"), ("0", "0 1")):
        script.current(31, member, 3, held)
    return script


def test_the_default_assignor_of_the_broker_is_inferred_from_a_target() -> None:
    script = by_range(RecordScript(partitions=5)).run(35)
    assert [row.strategy for row in script.rebalances] == ["kafka.server.uniform"] * 2 + ["kafka.server.range"]
    assert [row.agrees for row in script.rebalances] == [True] * 3
    joined, changed = script.rebalances[2].triggers
    assert (joined.kind, changed.kind) == ("member_joined", "strategy_changed")
    assert changed.detail == "inferred: kafka.server.uniform -> kafka.server.range"
    # From then on it is known.
    script.delete_member(40, "b")
    script.epoch(40, 4)
    script.target(40, 4, {"0": "0 1 2", "a": "3 4"})
    script.current(41, "a", 4, "3 4")
    script.current(42, "0", 4, "0 1 2")
    row = script.run(60_000).rebalances[3]
    assert (row.strategy, row.agrees, [one.kind for one in row.triggers]) == (
        "kafka.server.range",
        True,
        ["member_gone"],
    )
    assert script.findings() == []
    assert {one.verdict for one in script.audits()} == {"agrees"}
    assert script.row().strategy_verdict == "proven"


def test_the_default_assignor_of_the_broker_may_be_a_custom_one() -> None:
    script = RecordScript()
    script.first_member()
    script.member(20, "b")
    script.epoch(20, 2)
    script.target(20, 2, {"a": "0 1 2", "b": "3"})
    script.current(21, "a", 2, "0 1 2")
    script.current(22, "b", 2, "3")
    row = script.run(60_000).rebalances[1]
    assert (row.agrees, row.agrees_reason, row.queues_differing) == (None, "assignor_unknown", None)
    assert script.findings() == []
    audit = script.audits()[1]
    assert (audit.verdict, audit.reason) == ("not_recomputable", "assignor_unknown")


def test_an_assignor_that_members_name_is_no_other() -> None:
    script = by_range(RecordScript(partitions=5), assignor="server.uniform").run(60_000)
    row = script.rebalances[2]
    assert (row.strategy, row.agrees) == ("kafka.server.uniform", False)
    assert [one.reason for one in script.audits()] == [None, None, "another_strategy"]


@pytest.mark.parametrize(
    ("other", "target", "strategy", "agrees", "reason"),
    [
        # As many want uniform as range: whose request it was decides, and that is not recorded.
        ("server.range", {"a": "0 1 2", "0": "3 4"}, "kafka.server.uniform", True, None),
        ("server.range", {"0": "0 1 2", "a": "3 4"}, "kafka.server.range", True, None),
        ("server.range", {"0": "0 1 2 3", "a": "4"}, "kafka.server.uniform", False, None),
        ("server.y", {"a": "0 1 2", "0": "3 4"}, "kafka.server.uniform", True, None),
        ("server.y", {"0": "0 1 2 3", "a": "4"}, "kafka.server.uniform", None, "assignor_unknown"),
        # It comes before uniform in each map.
        ("server.x", {"a": "0 1 2", "0": "3 4"}, "kafka.server.x", None, "custom_strategy"),
    ],
)
def test_of_assignors_with_equal_votes_the_target_shows_which_it_is(
    other: str, target: dict[str, str], strategy: str, agrees: bool | None, reason: str | None
) -> None:
    script = RecordScript(partitions=5)
    script.member(10, "a", assignor="server.uniform")
    script.epoch(10, 1)
    script.target(10, 1, {"a": "0 1 2 3 4"})
    script.current(10, "a", 1, "0 1 2 3 4")
    script.member(20, "0", assignor=other)
    script.epoch(20, 2)
    script.target(20, 2, target)
    for member, held in target.items():
        script.current(21, member, 2, held)
    row = script.run(60_000).rebalances[1]
    assert (row.strategy, row.agrees, row.agrees_reason) == (strategy, agrees, reason)
    assert len(script.findings()) == (agrees is False)


def costs_of(script: RecordScript) -> dict[tuple[str, int, str], tuple[int | None, int | None]]:
    """Return what the last rebalance cost, of each span that it began: messages read twice, messages that wait."""
    number = script.rebalances[-1].generation
    spans = [one.body for one in script.changes if isinstance(one.body, QueueAssigned)]
    return {
        (one.origin, one.queue_id, one.member_id): (one.repeated_estimated_messages, one.waiting_estimated_messages)
        for one in spans
        if one.generation == number
    }


def test_a_queue_that_moves_within_an_epoch_costs_the_same_computed_and_reported() -> None:
    script = RecordScript()
    script.first_member()
    for queue in (2, 3):
        script.observe(1_000, "t", queue, committed=100)
        script.observe(6_000, "t", queue, committed=600)
        script.observe(11_000, "t", queue, end=2_000)
    script.second_member(at=20_000)
    script.run(30_000)
    assert script.spans("reported")[3:5] == ["t/2 b 20015..", "t/3 a 10..20010"]
    assert costs_of(script) == {
        (origin, queue, "b"): (500, 1_400) for origin in ("computed", "reported") for queue in (2, 3)
    }
    row = script.rebalances[-1]
    assert (row.repeated_estimated_messages, row.waiting_estimated_messages) == (1_000, 2_800)


def test_what_the_new_owner_commits_before_the_epoch_ends_is_not_its_predecessors() -> None:
    script = RecordScript()
    script.first_member()
    for queue, commits in {2: {6_000: 600, 20_012: 650}, 3: {6_000: 600, 20_050: 700}}.items():
        script.observe(1_000, "t", queue, committed=100)
        for at, committed in commits.items():
            script.observe(at, "t", queue, committed=committed)
    script.second_member(at=20_000)
    script.waiting = [one for one in script.waiting if getattr(one, "epoch", 0) != 2 or one.event_time != T0 + 20_010]
    script.current(20_010, "a", 1, "0 1", "unrevoked")
    script.current(20_100, "a", 2, "0 1")
    script.run(30_000)
    assert script.rebalances[-1].event_time == T0 + 20_100
    # Of 2 the former owner gave back what it had read. Of 3 nothing shows how fast it read: its own are not enough.
    assert costs_of(script)["reported", 2, "b"] == (0, None)
    assert ("reported", 3, "b") in costs_of(script)
    assert costs_of(script)["reported", 3, "b"] == (None, None)


# Six topics of a real group, in the order of its coordinator's map. Those with 22 and 20 partitions share a slot.
IN_MAP = (
    ("ILvcyvuMQVK4bE6lvyQjAg", 9),
    ("oGqt068fTcSAnbp1spoeQg", 7),
    ("y3OhM1M5TguCmI3AoIdLGA", 22),
    ("Cu2sNR-ARuiOXbEq9jHHMw", 20),
    ("m-lnSwJrQueuB3cNkdx8kg", 9),
    ("VJumDKGkTW-PJMNFYxUMFw", 22),
)


@pytest.mark.parametrize(("swapped", "agrees"), [(False, True), (True, False)])
def test_what_a_member_keeps_of_topics_that_share_a_slot_depends_on_the_order_of_its_record(
    swapped: bool, agrees: bool
) -> None:
    script = RecordScript(partitions=None, has_offsets=True)
    for number, (topic_id, count) in enumerate(IN_MAP):
        script.queues(0, f"t{number}", count, topic_id=topic_id)
    topics = tuple(f"t{number}" for number in range(len(IN_MAP)))
    everything = [TopicPartitions(topic_id, tuple(range(count))) for topic_id, count in IN_MAP]
    if swapped:
        everything[2], everything[3] = everything[3], everything[2]
    kept = [*everything[:2], TopicPartitions("y3OhM1M5TguCmI3AoIdLGA", tuple(range(22)))]
    shared = TopicPartitions("Cu2sNR-ARuiOXbEq9jHHMw", tuple(range(7)))
    others = [TopicPartitions(shared.topic, tuple(range(7, 20))), *everything[4:]]
    script.member(10, "a", topics, assignor="server.uniform")
    script.epoch(10, 1)
    script.record(10, "target", epoch=1)
    script.record(10, "member_target", member_id="a", partitions=tuple(everything))
    script.record(10, "member_current", member_id="a", epoch=1, state="stable", partitions=tuple(sorted(everything)))
    script.member(20, "b", topics, assignor="server.uniform")
    script.epoch(20, 2)
    script.record(20, "target", epoch=2)
    for at, member, held in ((20, "b", others), (21, "a", [*kept, shared])):
        script.record(20, "member_target", member_id=member, partitions=tuple(held))
        script.record(at, "member_current", member_id=member, epoch=2, state="stable", partitions=tuple(sorted(held)))
    assert [row.agrees for row in script.run(50).rebalances] == [True, agrees]
