"""What members of counted groups say they hold, and groups that come from an export."""

from __future__ import annotations

from tests.udfs.group_script import T0, Script
from udfs.events import GroupSnapshot, MemberInfo, QueueRef


def two_members() -> Script:
    """AVG gives a the queues 0 and 1, b 2 and 3."""
    script = Script("rocketmq")
    script.queues(0, "t", 4)
    script.join(10, "a")
    script.join(10, "b")
    return script


def test_what_a_member_says_lies_beside_and_changes_nothing_computed() -> None:
    script = two_members()
    script.holds(100, "a", [("t", 0), ("t", 1), ("t", 2)])
    script.holds(200, "a", [("t", 0)])
    script.run(300)
    assert script.spans("reported") == ["t/0 a 100..", "t/1 a 100..200", "t/2 a 100..200"]
    assert script.owners(250) == {"t/0": "a", "t/1": "a", "t/2": "b", "t/3": "b"}
    assert len(script.told()) == 1


def test_once_all_have_said_it_is_compared_until_they_agree() -> None:
    script = two_members()
    script.holds(100, "a", [("t", 0), ("t", 1), ("t", 2), ("t", 3)])
    script.holds(200, "b", [])
    script.holds(300, "a", [("t", 0), ("t", 1)])
    script.holds(400, "b", [("t", 2), ("t", 3)])
    script.run(500)
    assert script.findings() == ["expected_differs 200..400"]


def test_a_report_at_the_moment_of_a_rebalance_belongs_to_it() -> None:
    script = two_members()
    script.holds(10, "a", [("t", 0)])
    script.run(20)
    body = next(change.body for change in script.changes if getattr(change.body, "origin", "") == "reported")
    assert (body.generation, body.rebalance_id, body.valid_from) == (1, script.rebalances[0].rebalance_id, T0 + 10)


def test_what_was_reported_ends_with_its_member() -> None:
    script = two_members()
    script.holds(100, "a", [("t", 0)])
    script.leave(200, "a")
    assert script.run(300).spans("reported") == ["t/0 a 100..200"]


def test_a_report_of_somebody_unknown_is_nothing() -> None:
    script = two_members()
    script.holds(100, "x", [("t", 0)])
    assert script.run(200).spans("reported") == []


def restored(script: Script, at: int, **fields: object) -> None:
    script.event(GroupSnapshot, at, restored=True, **fields)


def test_a_restored_group_makes_no_rebalance_and_its_counter_goes_on() -> None:
    script = Script()
    script.queues(0, "t", 2)
    info = MemberInfo(
        member_id="a",
        subscriptions=("t",),
        joined_at=T0 - 90_000,
        last_heartbeat_at=T0 - 5_000,
        lives_by="heartbeats",
    )
    restored(
        script,
        10,
        generation=7,
        generation_source="counted",
        members=(info,),
        assignments={"a": (QueueRef("t", 0), QueueRef("t", 1))},
    )
    script.run(100)
    assert (script.told(), script.changes) == ([], [])
    script.run(50_000)
    # Its session ends 45 s after its last heartbeat, and its spans with it.
    assert script.told() == ["40000 #8 1->0 session_expired:a"]
    assert script.sessions() == ["a -90000..40000 expired"]
    assert script.rebalances[0].queues_revoked == 2


def test_a_restored_group_of_reported_generations_goes_on_from_its_own() -> None:
    script = Script()
    restored(
        script,
        10,
        generation=7,
        generation_source="reported",
        strategy="range",
        members=(MemberInfo(member_id="a", subscriptions=("t",), lives_by="snapshots"),),
        assignments={"a": (QueueRef("t", 0),)},
    )
    script.snapshot(20, 8, {"a": ["t"], "b": ["t"]}, {"a": [("t", 0)], "b": []}, strategy="range")
    assert script.run(100).told() == ["20 #8 1->2 member_joined:b"]
    assert script.rebalances[0].queues_kept == 1
