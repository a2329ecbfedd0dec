"""What members of counted groups say they hold, and groups that come from an export."""

from __future__ import annotations

from tests.udfs.group.group_script import T0, Script, assigned, two_members


def test_a_reported_assignment_is_kept_beside_and_changes_nothing_computed() -> None:
    script = two_members()
    script.holds(100, "a", [("t", 0), ("t", 1), ("t", 2)])
    script.holds(200, "a", [("t", 0)])
    script.run(300)
    assert script.spans("reported") == ["t/0 a 100..", "t/1 a 100..200", "t/2 a 100..200"]
    assert script.owners(250) == {"t/0": "a", "t/1": "a", "t/2": "b", "t/3": "b"}
    assert len(script.decided()) == 1


def test_once_all_have_reported_it_is_compared_until_they_agree() -> None:
    script = two_members()
    script.holds(40_000, "a", [("t", 0), ("t", 1), ("t", 2), ("t", 3)])
    script.holds(40_200, "b", [])
    script.holds(40_300, "a", [("t", 0), ("t", 1)])
    script.holds(40_400, "b", [("t", 2), ("t", 3)])
    script.run(41_000)
    assert script.findings() == [
        "expected_differs 40200..40400",
        "idle_members 40200..40400",
        "unassigned_queues 40300..40400",
    ]


def test_members_have_time_to_follow_before_it_is_wrong() -> None:
    script = two_members()
    script.holds(100, "a", [("t", 0), ("t", 1), ("t", 2), ("t", 3)])
    script.holds(200, "b", [])
    script.run(500)
    # A tick of 20 s, and two polls.
    assert script.last.wake_at == T0 + 10 + 30_000
    assert script.run(30_010).findings() == []
    assert script.run(30_011).findings() == ["expected_differs 30010..", "idle_members 30010.."]


def test_members_that_follow_in_time_were_never_wrong() -> None:
    script = two_members()
    script.holds(100, "a", [("t", 0), ("t", 1), ("t", 2), ("t", 3)])
    script.holds(200, "b", [])
    script.holds(20_000, "b", [("t", 2), ("t", 3)])
    script.holds(20_001, "a", [("t", 0), ("t", 1)])
    assert script.run(60_000).findings() == []


def test_what_was_wrong_stays_so_through_a_rebalance_until_they_agree() -> None:
    script = two_members()
    script.holds(100, "a", [("t", 0), ("t", 1), ("t", 2), ("t", 3)])
    script.holds(200, "b", [])
    for at in range(30_000, 120_000, 30_000):
        script.beat(at, "a")
        script.beat(at, "b")
    script.join(40_000, "c")
    script.holds(40_500, "c", [("t", 3)])
    script.beat(90_000, "c")
    # AVG gives a two queues, b and c one each; b says nothing new, and holds what it held: nothing.
    script.holds(50_000, "a", [("t", 0), ("t", 1)])
    script.holds(100_000, "b", [("t", 2)])
    assert script.run(119_000).findings() == [
        "expected_differs 30010..100000",
        "idle_members 30010..100000",
        "unassigned_queues 70000..100000",
    ]


def test_new_queues_are_observed_with_the_routes_and_then_a_tick() -> None:
    script = two_members()
    script.holds(100, "a", [("t", 0), ("t", 1)])
    script.holds(100, "b", [("t", 2), ("t", 3)])
    for at in (30_000, 60_000, 90_000):
        script.beat(at, "a")
        script.beat(at, "b")
    script.queues(40_000, "t", 6)
    assert script.run(100_100).findings() == ["expected_differs 100000..", "unassigned_queues 100000.."]


def test_a_poll_that_reports_the_whole_assignment_is_compared_too() -> None:
    script = Script("metaq")
    script.queues(0, "t", 2)
    both = {"a": ["t"], "b": ["t"]}
    script.snapshot(10, None, both, {"a": [("t", 0)], "b": []})
    script.snapshot(60_000, None, both, {"a": [("t", 0)], "b": []})
    script.snapshot(61_000, None, both, {"a": [("t", 0)], "b": [("t", 1)]})
    script.run(70_000)
    assert [row.agrees for row in script.rebalances] == [False]
    # Seen twice, and wrong once a session timeout and two seconds are over.
    assert script.findings() == [
        "expected_differs 32010..61000",
        "idle_members 10..61000",
        "unassigned_queues 10..61000",
    ]


def test_a_strategy_that_explains_what_members_hold_ends_the_difference_at_once() -> None:
    script = Script("rocketmq")
    script.queues(0, "t", 4)
    script.poll(10, "a", "b")
    script.holds(100, "a", [("t", 0), ("t", 2)])
    script.holds(100, "b", [("t", 1), ("t", 3)])
    script.settings(40_000, strategy="AVG_BY_CIRCLE", inferred=True)
    assert script.run(50_000).findings() == ["expected_differs 30010..40000"]


def test_topics_for_retries_are_not_compared() -> None:
    script = Script("rocketmq")
    script.queues(0, "t", 1)
    script.snapshot(10, None, {"a": ("t", "%RETRY%g")})
    script.holds(50_000, "a", [("t", 0), ("%RETRY%g", 0)])
    assert script.run(60_000).findings() == []


def test_what_cannot_be_recomputed_is_not_compared() -> None:
    script = Script("rocketmq")
    script.queues(0, "t", 2)
    script.snapshot(10, None, {"a": ["t"]}, describe={"a": {"strategies": ("com.example.X",)}})
    script.holds(50_000, "a", [("t", 1)])
    assert script.run(60_000).findings() == []


def test_what_was_reported_ends_with_its_member() -> None:
    script = two_members()
    script.holds(100, "a", [("t", 0)])
    script.leave(200, "a")
    assert script.run(300).spans("reported") == ["t/0 a 100..200"]


def test_a_report_of_somebody_unknown_is_nothing() -> None:
    script = two_members()
    script.holds(100, "x", [("t", 0)])
    assert script.run(200).spans("reported") == []


def test_a_report_that_came_before_its_generation_counts_from_its_own_time() -> None:
    script = Script()
    script.queues(0, "t", 2)
    script.holds(30, "a", [("t", 0)], generation=7)
    script.run(40)
    script.snapshot(20, 7, {"a": ["t"]}, assigned(a="0 1"))
    script.run(50)
    assert script.spans("reported") == ["t/0 a 20..", "t/1 a 20..30"]
