"""When a generation is audited, and what its audit holds."""

from __future__ import annotations

import pytest

from tests.udfs.group.group_script import T0, Script
from tests.udfs.group.record_script import RecordScript
from udfs.group.audit.audit import MAX_LISTED, difference


def kafka(queues: int = 4) -> Script:
    script = Script("kafka")
    script.queues(0, "t", queues)
    return script


BOTH = {"a": ["t"], "b": ["t"]}


@pytest.mark.parametrize(
    ("expected", "reported", "kind"),
    [
        (["a"], [], "missing"),
        (["a", "b"], ["b"], "missing"),
        (["a"], ["a", "b"], "duplicate"),
        ([], ["a", "b"], "duplicate"),
        (["a"], ["b"], "unexpected_owner"),
        ([], ["b"], "unexpected_owner"),
    ],
)
def test_kinds_of_differences(expected: list[str], reported: list[str], kind: str) -> None:
    assert difference(expected, reported) == kind


def test_the_list_of_differing_queues_is_bounded_and_their_number_is_not() -> None:
    script = kafka(200)
    swapped = {"a": [("t", queue) for queue in range(100, 200)], "b": [("t", queue) for queue in range(100)]}
    script.snapshot(10, 1, BOTH, swapped, strategy="range")
    script.run(100)
    [audit] = script.audits()
    assert (audit.queues_differing, len(audit.differing)) == (200, MAX_LISTED)
    assert [queue.queue_id for queue in audit.differing] == list(range(MAX_LISTED))


def test_epochs_of_the_new_protocol_are_audited_by_their_targets() -> None:
    script = RecordScript()
    script.first_member()
    script.second_member()
    script.waiting = [event for event in script.waiting if event.event_time < T0 + 30]  # b never gets its queues
    script.delete_member(40, "b")
    script.epoch(40, 3)
    script.member(41, "c")
    script.epoch(41, 4)
    script.target(41, 4, {"a": "0 1", "c": "2 3"})
    script.current(42, "a", 4, "0 1")
    script.current(43, "c", 4, "2 3")
    script.run(60)
    agreement = {row.generation: row.agrees for row in script.rebalances}
    audits = {audited.generation: audited.verdict for audited in script.audits()}
    assert agreement == {1: True, 2: True, 3: None, 4: True}
    assert audits[1] == audits[2] == audits[4] == "agrees"
    assert audits.get(3, "not_recomputable") == "not_recomputable"
    assert (script.row().strategy_verdict, script.row().verdict_generations) == ("proven", 2)
