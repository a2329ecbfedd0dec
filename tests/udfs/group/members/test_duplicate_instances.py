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


def test_restarts_now_and_then_are_none() -> None:
    script = Script()
    script.queues(0, "t", 2)
    for number in range(6):
        take_place(script, 10 + CONTENDED_WITHIN_MS * number // 2, f"i{number}", "/10.0.0.1")
    script.run(10 * CONTENDED_WITHIN_MS)
    assert messages(script) == []
