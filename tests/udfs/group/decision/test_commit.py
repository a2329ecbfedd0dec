"""Decisions applied to a group."""

from __future__ import annotations

from tests.udfs.group.group_script import Script, assigned


def test_a_report_of_a_generation_not_yet_observed_waits_for_its_snapshot() -> None:
    script = Script()
    script.snapshot(10, 1, {"a": ["t"]}, strategy="range")
    script.holds(15, "a", [("t", 0)], generation=2)
    script.holds(16, "a", [("t", 9)], generation=0)
    script.snapshot(20, 2, {"a": ["t"]}, strategy="range")
    assert script.run(18).spans("reported") == []
    assert script.run(30).spans("reported") == ["t/0 a 20.."]


def test_a_group_of_a_kind_that_is_not_followed_is_listed_and_never_rebalances() -> None:
    script = Script()
    script.snapshot(10, 3, {}, state="not_followed")
    script.snapshot(20, 4, {"w": (), "v": ()}, state="not_followed", protocol="connect")
    script.queues(25, "t", 3)
    script.run(30)
    assert script.decided() == []
    row = script.row()
    assert (row.state, row.protocol, row.generation, row.members) == ("not_followed", "connect", 4, 2)


def test_a_deleted_group_of_reported_generations_ends_without_a_rebalance() -> None:
    script = Script()
    script.snapshot(10, 5, {"a": ["t"]}, assigned(a="0"), strategy="range")
    script.delete(20)
    script.snapshot(30, 1, {"b": ["t"]}, assigned(b="0"), strategy="range")
    script.run(40)
    assert script.decided()[1:] == ["30 #1 0->1 group_created member_joined:b"]
    assert script.sessions() == ["a 10..20 gone", "b 30.."]
    assert script.spans("reported") == ["t/0 a 10..20", "t/0 b 30.."]


def test_a_deleted_group_ends_and_what_comes_next_is_created_with_the_counter_kept() -> None:
    script = Script()
    script.queues(0, "t", 1)
    script.join(10, "a")
    script.delete(20)
    script.join(30, "a")
    script.run(40)
    assert script.decided()[1:] == ["20 #2 1->0 member_gone:a", "30 #3 0->1 group_created member_joined:a"]
    assert script.sessions() == ["a 10..20 gone", "a 30.."]
    assert script.spans() == ["t/0 a 10..20", "t/0 a 30.."]


def test_what_is_wrong_with_a_rebalance_is_open_until_one_that_is_right() -> None:
    script = Script()
    script.queues(0, "t", 1)
    script.join(10, "a")
    script.join(20, "b")
    script.leave(30, "b")
    script.run(40)
    assert script.findings() == ["idle_members 20..30"]
