"""A group restored from the readable part of an export."""

from __future__ import annotations

from tests.udfs.group.group_script import T0, Script, restored
from udfs.model.events import MemberInfo, QueueRef


def test_a_restored_group_makes_no_rebalance_and_its_counter_continues() -> None:
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
    assert (script.decided(), script.changes) == ([], [])
    script.run(50_000)
    # Its session ends 45 s after its last heartbeat, and its spans with it.
    assert script.decided() == ["40000 #8 1->0 session_expired:a"]
    assert script.sessions() == ["a -90000..40000 expired"]
    assert script.rebalances[0].queues_revoked == 2


def test_a_restored_group_of_reported_generations_continues_from_its_own() -> None:
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
    assert script.run(100).decided() == ["20 #8 1->2 member_joined:b"]
    assert script.rebalances[0].queues_kept == 1
