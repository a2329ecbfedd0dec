"""What an audit leaves in a group and in the journal."""

from __future__ import annotations

from tests.udfs.group.group_script import T0, Script, assigned
from udfs.group.state.group import CurrentAudit
from udfs.model.audits import Audited

BOTH = {"a": ["t"], "b": ["t"]}


def test_an_audit_is_written_at_the_time_of_its_generation_and_remembered() -> None:
    script = Script("kafka")
    script.snapshot(10, 1, BOTH, assigned(a="0 1", b="2 3"), strategy="range")
    script.run(20)
    assert script.audits() == [], "its topics are not known yet"
    script.queues(30, "t", 4)
    script.run(40)
    times = [change.event_time - T0 for change in script.written if isinstance(change.body, Audited)]
    assert times == [10]
    assert script.group.audit == CurrentAudit("agrees", True, T0 + 10)
    assert script.group.verdict is None, "of generations before"
