"""Topics that change, and topics of a reported generation that are known only later."""

from __future__ import annotations

import pytest

from tests.udfs.group.group_script import Script, assigned
from udfs.model.events import QueueInfo


def test_a_group_of_unknown_topics_rebalances_with_zero_queues() -> None:
    script = Script()
    script.join(10, "a")
    row = script.run(20).rebalances[0]
    assert (row.queues_after, row.unassigned_queues, row.status) == (0, 0, "completed")


def test_a_topic_that_appears_grows_and_is_deleted_is_a_cause_each_time() -> None:
    script = Script()
    script.join(10, "a")
    script.queues(20, "t", 2)
    script.queues(30, "t", 3)
    script.queues(40, "t", 0)
    script.run(50)
    assert script.decided()[1:] == [f"{at} #{n} 1->1 queue_count_changed:t" for at, n in ((20, 2), (30, 3), (40, 4))]
    assert script.spans() == ["t/0 a 20..40", "t/1 a 20..40", "t/2 a 30..40"]
    assert [row.queues_after for row in script.rebalances] == [0, 2, 3, 0]
    assert [row.queues_before for row in script.rebalances] == [0, 0, 2, 3]


def test_the_trigger_names_what_changed_of_settings_and_of_queues() -> None:
    script = Script("rocketmq")
    script.queues(0, "t", queues=(QueueInfo(0, "x"), QueueInfo(0, "y")))
    script.join(10, "a")
    script.settings(20, mode="broadcasting", strategy_settings={"virtual_nodes": 5})
    script.queues(30, "t", queues=(QueueInfo(0, "x"), QueueInfo(0, "z")))
    script.queues(40, "t", queues=(QueueInfo(0, "x", "r1"), QueueInfo(0, "z")))
    script.queues(50, "t", queues=(QueueInfo(0, "x", "r1"),))
    script.run(60)
    assert [row.triggers[0].detail for row in script.rebalances[1:]] == [
        "mode clustering -> broadcasting, settings of the strategy",
        "2 -> 2, 1 of them new",
        "2 -> 2, other racks",
        "2 -> 1",
    ]


def test_no_member_is_idle_while_a_generation_waits_for_its_topics() -> None:
    script = Script()
    script.queues(0, "u", 3)
    script.snapshot(10, 3, {"a": ["t"], "b": ["t"], "x": ["u"]}, strategy="range")
    script.queues(500, "t", 1)
    script.run(100)
    row = script.rebalances[0]
    assert (row.queues_assigned, row.idle_members, row.unassigned_queues, row.spread) == (0, 0, 0, 0)
    assert script.findings() == []
    script.run(600)
    assert (script.row().idle_members, script.row().unassigned_queues, script.row().spread) == (1, 0, 3)
    assert script.findings() == ["idle_members 500.."]


def test_the_first_reported_queues_hold_for_the_current_generation_from_its_own_time() -> None:
    script = Script()
    script.snapshot(10, 4, {"a": ["t"], "b": ["t"]}, strategy="range")
    script.queues(500, "t", 2)
    script.queues(600, "t", 4)
    assert script.run(100).spans() == []
    script.run(700)
    assert script.spans() == ["t/0 a 10.. inferred", "t/1 b 10.. inferred"]
    assert len(script.decided()) == 1
    assert script.row().queues == 2


def test_a_topic_reported_only_later_completes_the_groups_row() -> None:
    script = Script()
    script.snapshot(10, 4, {"a": ["t"], "b": ["t"], "c": ["t"]}, strategy="range")
    script.queues(500, "t", 2)
    script.run(100)
    assert (script.row().queues, script.row().idle_members) == (0, 3)
    row = script.run(700).row()
    assert (row.queues, row.idle_members, row.unassigned_queues, row.spread) == (2, 1, 0, 1)


def test_a_generation_computed_late_brings_nothing_back_that_a_deletion_at_its_own_time_had_ended() -> None:
    script = Script()
    script.queues(0, "u", 1)
    script.snapshot(10, 1, {"a": ["u"]}, {"a": [("u", 0)]}, strategy="range")
    script.delete(800)
    script.snapshot(800, 1, {"a": ["t"]}, assigned(a="0"), strategy="range")
    script.queues(900, "t", 2)
    script.run(1_000)
    assert script.spans() == ["t/0 a 800.. inferred", "t/1 a 800.. inferred", "u/0 a 10..800"]


def test_a_topic_that_vanishes_or_returns_is_the_cause_of_the_generation_that_shows_it() -> None:
    script = Script()
    script.queues(0, "t", 6)
    script.snapshot(10, 1, {"a": ["t"]}, strategy="range")
    script.queues(20, "t", 0)
    script.snapshot(30, 2, {"a": ["t"]}, strategy="range")
    script.queues(40, "t", 3)
    script.snapshot(50, 3, {"a": ["t"]}, strategy="range")
    script.run(60)
    assert script.decided()[1:] == ["30 #2 1->1 queue_count_changed:t", "50 #3 1->1 queue_count_changed:t"]
    assert [row.triggers[0].detail for row in script.rebalances[1:]] == ["6 -> 0", "0 -> 3"]
    assert [(row.queues_before, row.queues_after) for row in script.rebalances[1:]] == [(6, 0), (0, 3)]


def test_a_topic_reported_from_the_first_as_deleted_is_new_when_it_comes() -> None:
    script = Script()
    script.snapshot(10, 1, {"a": ["t"]}, strategy="range")
    script.queues(20, "t", 0)
    script.queues(40, "t", 3)
    script.snapshot(50, 2, {"a": ["t"]}, strategy="range")
    script.run(60)
    assert script.decided()[1:] == ["50 #2 1->1 queue_count_changed:t"]


def test_a_queue_that_a_member_reported_before_is_no_growth_of_a_topic_without_metadata() -> None:
    script = Script()
    script.snapshot(10, 9, {"a": ["t"], "b": ["t"]}, strategy="range")
    script.holds(20, "b", [("t", 1)])
    script.snapshot(30, 10, {"a": ["t"]}, strategy="range")
    script.snapshot(40, 11, {"a": ["t"]}, {"a": [("t", 0), ("t", 1)]}, strategy="range")
    script.run(50)
    assert [line.split(" ", 3)[3] for line in script.decided()[1:]] == ["member_gone:b", "unexplained"]


def test_a_cooperative_generation_leaves_a_topic_unknown_that_it_does_not_name() -> None:
    script = Script()
    script.snapshot(10, 3, {"a": ["t", "u"], "b": ["t"]}, assigned(a="0", b="1"), strategy="cooperative-sticky")
    script.snapshot(20, 4, {"a": ["t", "u"], "b": ["t"]}, assigned(a="0", b="1") | {"a": [("t", 0), ("u", 0)]},
                    strategy="cooperative-sticky")  # fmt: skip
    script.run(30)
    first, second = script.rebalances
    assert (first.agrees, first.queues_differing, second.agrees) == (None, None, None)
    assert script.decided()[1:] == ["20 #4 2->2 unexplained"]
    assert [span for span in script.spans() if " 10.." in span] == []
    script.queues(40, "t", 2)
    script.queues(40, "u", 1)
    script.run(50)
    assert len(script.rebalances) == 2
    assert script.spans() == ["t/0 a 20.. inferred", "t/1 b 20.. inferred", "u/0 a 20.. inferred"]


def test_an_eager_generation_shows_that_there_is_no_such_topic_and_a_later_one_that_it_was_made() -> None:
    script = Script()
    script.snapshot(10, 3, {"a": ["t", "u"], "b": ["t"]}, assigned(a="0", b="1"), strategy="range")
    whole = assigned(b="1") | {"a": [("t", 0), ("u", 0)]}
    script.snapshot(20, 4, {"a": ["t", "u"], "b": ["t"]}, whole, strategy="range")
    script.run(30)
    assert [(row.agrees, row.agrees_reason) for row in script.rebalances] == [(None, "topics_unknown")] * 2
    assert script.decided()[1:] == ["20 #4 2->2 queue_count_changed:u"]


def test_members_keep_their_queues_while_a_cooperative_generation_waits_for_a_topic() -> None:
    script = Script()
    script.queues(0, "t", 2)
    script.snapshot(10, 3, {"a": ["t"], "b": ["t"]}, assigned(a="0", b="1"), strategy="cooperative-sticky")
    script.snapshot(20, 4, {"a": ["t", "u"]}, assigned(a="0"), strategy="cooperative-sticky")
    script.run(30)
    assert script.owners(25) == {"t/0": "a"}
    assert script.rebalances[1].agrees is None
    script.queues(40, "u", 1)
    script.run(50)
    assert script.owners(25) == {"t/0": "a", "t/1": "a", "u/0": "a"}


def test_metadata_that_is_older_than_a_generation_takes_none_of_its_queues_away() -> None:
    script = Script()
    script.queues(0, "t", 2)
    script.snapshot(10, 1, {"a": ["t"]}, assigned(a="0 1"), strategy="cooperative-sticky")
    script.queues(20, "t", 3)
    script.snapshot(30, 2, {}, {})
    script.snapshot(40, 3, {"a": ["t"]}, assigned(a="0 1 2 3"), strategy="cooperative-sticky")
    script.snapshot(50, 4, {"a": ["t"], "b": ["t"]}, assigned(a="", b=""), strategy="cooperative-sticky")
    script.run(60)
    assert [row.queues_after for row in script.rebalances] == [2, 0, 4, 4]
    assert script.decided()[3:] == ["50 #4 1->2 member_joined:b"]


def test_what_a_generation_of_the_same_time_ended_stays_ended_when_a_later_batch_brings_the_next_one() -> None:
    spans = []
    for is_cut in (False, True):
        script = Script()
        held = assigned(a="1", b="2", c="0")
        script.snapshot(10, 6, {one: ["t"] for one in "abcd"}, held, strategy="cooperative-sticky")
        script.snapshot(50, 7, {"b": ["t"]}, assigned(b="0 1 2"), strategy="cooperative-sticky")
        if is_cut:
            script.run(51)
        script.snapshot(50, 8, {"c": ["t"]}, assigned(c="0 1 2 3"), strategy="cooperative-sticky")
        script.queues(500, "t", 7)
        spans.append(script.run(600).spans())
    assert spans[1] == spans[0]
    assert {"t/2 c 10..50 inferred", "t/2 c 50.. inferred"} <= set(spans[1])


@pytest.mark.parametrize(("topic", "count"), [("t", 4), ("u", 2)])
def test_what_a_generation_without_members_ended_stays_ended_however_late_the_next_one_of_its_time_comes(
    topic: str, count: int
) -> None:
    spans = []
    for is_cut in (False, True):
        script = Script()
        script.snapshot(10, 2, {"a": ["t"], "b": ["t"]}, assigned(a="0 1", b="2"), strategy="range")
        script.snapshot(50, 3, {}, {})
        if is_cut:
            script.run(51)
        script.snapshot(50, 4, {"b": [topic]}, {"b": [(topic, 0)]}, strategy="range")
        if is_cut:
            script.run(100)
        script.queues(500, topic, count)
        spans.append(script.run(600).spans())
    assert spans[1] == spans[0]
    assert spans[1] == sorted(
        ["t/0 a 10..50 inferred", "t/1 a 10..50 inferred", "t/2 b 10..50 inferred"]
        + [f"{topic}/{number} b 50.. inferred" for number in range(count)]
    )


def test_several_generations_of_one_time_may_come_each_in_a_batch_of_its_own() -> None:
    spans = []
    for is_cut in (False, True):
        script = Script()
        script.snapshot(10, 2, {"a": ["t"], "b": ["t"]}, assigned(a="0", b="1"), strategy="range")
        for number, members in ((3, ""), (4, "ab"), (5, "b")):
            script.snapshot(50, number, {one: ["t"] for one in members}, assigned(**dict.fromkeys(members, "0")))
            if is_cut:
                script.run(51 + number)
        script.queues(500, "t", 3)
        spans.append(script.run(600).spans())
    assert spans[1] == spans[0]


@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize("has_metadata", [False, True])
def test_queues_that_newer_metadata_lacks_stay_away_though_members_held_them(count: int, has_metadata: bool) -> None:
    """The first metadata of a topic counts as any other does."""
    script = Script()
    if has_metadata:
        script.queues(0, "t", 3)
    script.snapshot(10, 1, {"a": ["t"]}, assigned(a="0 1 2"), strategy="range")
    script.queues(20, "t", count)
    script.snapshot(30, 2, {"a": ["t"]}, strategy="range")
    script.snapshot(40, 3, {"a": ["t"]}, strategy="range")
    script.snapshot(50, 4, {"a": ["t"]}, assigned(a="0 1"), strategy="range")
    script.run(60)
    assert [row.queues_after for row in script.rebalances] == [3, count, count, 2]
    assert script.decided()[1:] == [
        "30 #2 1->1 queue_count_changed:t",
        "40 #3 1->1 unexplained",
        "50 #4 1->1 queue_count_changed:t",
    ]


def test_queues_that_only_a_member_reported_are_none_once_the_first_metadata_lacks_them() -> None:
    script = Script()
    script.holds(5, "a", [("t", 0), ("t", 1)], generation=1)
    script.snapshot(10, 1, {"a": ["t"]}, strategy="range")
    script.queues(20, "t", 1)
    script.snapshot(30, 2, {"a": ["t"]}, strategy="range")
    script.run(40)
    assert script.decided()[1:] == ["30 #2 1->1 unexplained"]
    assert script.rebalances[1].queues_after == 1


def test_what_is_held_of_a_topic_without_subscribers_shows_none_of_its_queues() -> None:
    script = Script()
    script.snapshot(10, 1, {"a": ["t"], "b": ["u"]}, assigned(a="0 1"), strategy="range")
    script.snapshot(20, 2, {"a": ["u"], "b": ["u"]}, strategy="range")
    script.queues(30, "t", 0)
    script.snapshot(40, 3, {"a": ["u"], "b": ["t", "u"]}, strategy="range")
    script.snapshot(50, 4, {"a": ["u"], "b": ["t", "u"]}, strategy="range")
    script.run(60)
    assert [row.queues_after for row in script.rebalances] == [2, 0, 0, 0]


@pytest.mark.parametrize("is_cut", [False, True])
def test_what_members_report_is_not_compared_with_a_guess_while_any_topic_lacks_metadata(is_cut: bool) -> None:
    script = Script()
    script.snapshot(0, 1, {"a": ["t", "u", "v"]}, {"a": [("t", 0), ("u", 0)]}, strategy="range")
    script.queues(10, "t", 3)
    script.queues(20, "u", 1)
    if is_cut:
        script.run(25)
    script.holds(30, "a", [("u", 0)])
    assert script.run(40).findings() == []
    script.queues(50, "v", 1)
    assert script.run(60).findings() == ["expected_differs 50..", "unassigned_queues 50.."]


@pytest.mark.parametrize("reported_at", [20, 35])
def test_a_topic_that_had_ended_before_a_generation_is_not_shown_by_what_members_hold(reported_at: int) -> None:
    script = Script()
    script.queues(0, "u", 1)
    script.snapshot(10, 1, {"y": ["t"]}, strategy="range")
    script.holds(reported_at, "y", [("u", 0), ("u", 1)])
    script.queues(30, "u", 0)
    script.snapshot(40, 2, {"a": ["u"], "y": ["t"]}, strategy="range")
    script.snapshot(50, 3, {"a": ["u"], "y": ["t"]}, strategy="range")
    script.run(60)
    assert [row.queues_after for row in script.rebalances] == [0, 0, 0]
