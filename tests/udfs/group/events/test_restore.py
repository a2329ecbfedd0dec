"""A group restored from the readable part of an export."""

from __future__ import annotations

import msgspec
import pytest

from tests.udfs.group.group_script import T0, Script, assigned, restored
from tests.udfs.group.kafka.test_cooperative_steps import logical_parts, pauses
from udfs.group.format.snapshot import snapshot_of
from udfs.group.state.writing import assign
from udfs.model.events import AnyEvent, GroupSnapshot, MemberInfo, QueueRef

COOPERATIVE = {"strategy": "cooperative-sticky", "leader": "a"}


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


def within_a_cooperative_rebalance() -> Script:
    """Return a group of which one generation took queues away, and another one gave none of them."""
    script = Script()
    script.queues(0, "t", 4)
    script.snapshot(1_000, 1, {"a": ["t"]}, assigned(a="0 1 2 3"), **COOPERATIVE)
    script.snapshot(2_000, 2, {"a": ["t"], "b": ["t"]}, assigned(a="0 1", b=""), **COOPERATIVE)
    three = {"a": ["t"], "b": ["t"], "c": ["t"]}
    script.snapshot(3_500, 3, three, assigned(a="0 1", b="", c=""), joined_at=T0 + 3_400, **COOPERATIVE)
    return script.run(4_000)


def give_out(script: Script) -> Script:
    """Have the last generation give all queues out."""
    three = {"a": ["t"], "b": ["t"], "c": ["t"]}
    script.snapshot(5_000, 4, three, assigned(a="0 1", b="2", c="3"), joined_at=T0 + 4_900, **COOPERATIVE)
    return script.run(9_000)


def taken_in(source: Script, **fields: object) -> Script:
    """Return a new group that has taken the readable part of an export of another one in."""
    exported = msgspec.structs.replace(
        snapshot_of(source.group, {}, T0 + 4_000), cluster="c", group="g", event_id="export", **fields
    )
    event = msgspec.json.decode(msgspec.json.encode(exported), type=AnyEvent)
    assert isinstance(event, GroupSnapshot)
    script = Script()
    script.queues(0, "t", 4)
    script.waiting.append(event)
    return script.run(4_500)


def test_a_group_that_is_exported_within_a_cooperative_rebalance_continues_it() -> None:
    source = within_a_cooperative_rebalance()
    script = give_out(taken_in(source))
    whole = give_out(source)
    assert script.decided() == ["5000 #4 3->3 cooperative_follow_up"] == whole.decided()[3:]
    last, expected = script.rebalances[0], whole.rebalances[3]
    names = ("logical_id", "queue_pause_ms", "pause_ms", "agrees", "unassigned_queues", "queues_assigned")
    assert [getattr(last, name) for name in names] == [getattr(expected, name) for name in names]
    assert logical_parts(whole) == [2, 2, 2]
    assert pauses(script) == pauses(whole) == {("b", 2, 5_000): 3_000, ("c", 3, 5_000): 3_000}
    assert script.findings() == []


def test_an_older_export_lacks_the_queues_that_wait() -> None:
    script = taken_in(within_a_cooperative_rebalance(), revoked=None, logical_id=None)
    assert (script.group.revoked_pending, script.group.waiting_since, script.group.logical_id) == ([], {}, None)
    script = give_out(script)
    assert script.decided() == ["5000 #4 3->3 unexplained"]
    assert set(pauses(script).values()) == {None}


@pytest.mark.parametrize("revoked_at", [None, T0 + 2_000])
def test_a_wait_without_a_beginning_has_none_after_an_export(revoked_at: int | None) -> None:
    source = within_a_cooperative_rebalance()
    assign(source.group, waiting_since=dict.fromkeys(source.group.waiting_since, revoked_at))
    script = give_out(taken_in(source))
    assert script.rebalances[0].queue_pause_ms == (None if revoked_at is None else 6_000)
