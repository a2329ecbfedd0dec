"""Two processes with one instance id."""

from __future__ import annotations

from tests.udfs.group.group_script import Script, assigned
from udfs.group.members.duplicate_instances import CONTENDED_WITHIN_MS
from udfs.model.journal import FindingOpened


def take_place(script: Script, at: int, member: str, host: str) -> None:
    """Have the coordinator write generation 1 with the instance ``i`` under this id."""
    describe = {member: {"instance_id": "i", "host": host}, "o": {}}
    script.snapshot(at, 1, {member: ["t"], "o": ["t"]}, assigned(**{member: "0", "o": "1"}), describe, strategy="range")


def messages(script: Script) -> list[str]:
    bodies = [change.body for change in script.changes]
    return [body.message for body in bodies if isinstance(body, FindingOpened) and body.finding == "duplicate_instance"]


def test_a_member_that_was_fenced_shows_a_second_process() -> None:
    script = Script()
    script.queues(0, "t", 2)
    take_place(script, 10, "i1", "/10.0.0.1")
    take_place(script, 1_000, "i2", "/10.0.0.2")
    script.leave(1_500, "i1", how="fenced", reason="broker log: fenced by i2 during heartbeat")
    script.run(2_000)
    assert script.sessions() == ["i1 10..1000 replaced", "i2 1000..", "o 10.."]
    assert messages(script) == [
        "Two processes use one group.instance.id: instance i was fenced (broker log: fenced by i2 during heartbeat)."
    ]
    script.run(1_500 + CONTENDED_WITHIN_MS + 1)
    assert script.findings() == [f"duplicate_instance 1500..{1_500 + CONTENDED_WITHIN_MS}"]
    assert len(script.rebalances) == 1


def test_an_instance_that_changes_its_process_often_is_found_from_the_records_alone() -> None:
    script = Script()
    script.queues(0, "t", 2)
    for number in range(4):
        take_place(script, 10 + 20_000 * number, f"i{number}", f"/10.0.0.{1 + number % 2}")
        script.run(20 + 20_000 * number)
        assert bool(messages(script)) == (number >= 3)
    assert messages(script) == [
        "Instance i came back under a new member id 3 times within ten minutes, from /10.0.0.1, /10.0.0.2: two"
        " processes may be taking it from each other."
    ]
    assert script.decided() == ["10 #1 0->2 group_created member_joined:i0 member_joined:o"]


def test_restarts_now_and_then_are_none() -> None:
    script = Script()
    script.queues(0, "t", 2)
    for number in range(6):
        take_place(script, 10 + CONTENDED_WITHIN_MS * number // 2, f"i{number}", "/10.0.0.1")
    script.run(10 * CONTENDED_WITHIN_MS)
    assert messages(script) == []
