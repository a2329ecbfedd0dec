"""When a generation is audited, and what its audit holds."""

from __future__ import annotations

import pytest

from tests.udfs.group.group_script import T0, Script, assigned, two_members
from tests.udfs.group.record_script import RecordScript
from udfs.group.audit.audit import MAX_LISTED, difference
from udfs.model.audits import AuditedQueue


def verdicts(script: Script) -> list[str]:
    """Return the audits as lines: generation, verdict, reason, when it was audited."""
    return [f"#{one.generation} {one.verdict} {one.reason} {one.audited_at - T0}" for one in script.audits()]


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


def test_a_reported_generation_is_audited_as_it_is_reported() -> None:
    script = kafka()
    script.snapshot(10, 1, BOTH, assigned(a="0 1", b="2 3"), strategy="range")
    script.snapshot(20, 2, {"a": ["t"]}, assigned(a="0 1 2 3"), strategy="range")
    script.run(100)
    assert verdicts(script) == ["#1 agrees None 10", "#2 agrees None 20"]
    [first, second] = script.audits()
    assert (first.strategy, first.members, first.queues, first.queues_differing) == ("kafka.range", 2, 4, 0)
    assert (second.members, second.rebalance_id) == (1, script.rebalances[1].rebalance_id)
    # One member gets everything from any strategy: that proves nothing.
    row = script.row()
    assert (row.strategy_verdict, row.verdict_generations, row.verdict_from) == ("proven", 1, T0 + 10)


def test_each_differing_queue_is_named_with_its_owners() -> None:
    script = kafka()
    script.snapshot(10, 1, BOTH, {"a": [("t", 0), ("t", 2)], "b": [("t", 2), ("t", 1)]}, strategy="range")
    script.run(100)
    [audit] = script.audits()
    assert audit.differing == [
        AuditedQueue("t", None, 1, "unexpected_owner", ["a"], ["b"]),
        AuditedQueue("t", None, 2, "duplicate", ["b"], ["a", "b"]),
        AuditedQueue("t", None, 3, "missing", ["b"], []),
    ]
    assert (audit.verdict, audit.queues_differing) == ("differs", 3)
    assert (audit.missing, audit.duplicate, audit.unexpected_owner) == (1, 1, 1)
    row = script.row()
    assert (row.strategy_verdict, row.verdict_reason) == ("contradicted", "custom_strategy")


def test_the_list_of_differing_queues_is_bounded_and_their_number_is_not() -> None:
    script = kafka(200)
    swapped = {"a": [("t", queue) for queue in range(100, 200)], "b": [("t", queue) for queue in range(100)]}
    script.snapshot(10, 1, BOTH, swapped, strategy="range")
    script.run(100)
    [audit] = script.audits()
    assert (audit.queues_differing, len(audit.differing)) == (200, MAX_LISTED)
    assert [one.queue_id for one in audit.differing] == list(range(MAX_LISTED))


def test_a_generation_with_late_metadata_is_audited_later() -> None:
    script = Script("kafka")
    script.snapshot(10, 1, BOTH, assigned(a="0 2", b="1"), strategy="range")
    script.run(50)
    assert verdicts(script) == []
    script.queues(60, "t", 4)
    script.run(100)
    assert verdicts(script) == ["#1 differs custom_strategy 60"]
    assert [one.queue_id for one in script.audits()[0].differing] == [1, 2, 3]
    assert script.row().strategy_verdict == "contradicted"


def test_an_assignment_of_topics_without_metadata_is_audited_once_they_have_it() -> None:
    script = Script("kafka")
    script.snapshot(10, 1, BOTH, assigned(a="0 1", b="2"), strategy="range")
    script.run(50)
    assert verdicts(script) == []
    assert [(row.agrees, row.agrees_reason) for row in script.rebalances] == [(None, "topics_unknown")]
    script.queues(60, "t", 5)
    script.run(100)
    [audit] = script.audits()
    assert (audit.verdict, audit.reason, audit.detail) == (
        "differs",
        "stale_metadata",
        "The reported assignment is exactly what results with the queues that the assignment names (t: 3 of 5).",
    )


def test_a_generation_overtaken_before_it_has_all_metadata_gets_no_verdict() -> None:
    script = Script("kafka")
    script.snapshot(10, 1, BOTH, assigned(a="0 2", b="1"), strategy="range")
    script.snapshot(20, 2, {"a": ["t"]}, assigned(a="0 1 2"), strategy="range")
    script.run(50)
    assert verdicts(script) == ["#1 not_recomputable topics_unknown 20"]


def test_members_that_report_for_themselves_are_audited_once_they_agree() -> None:
    script = two_members()
    script.holds(100, "a", [("t", 0), ("t", 1), ("t", 2), ("t", 3)])
    script.holds(200, "b", [])
    script.holds(5_000, "b", [("t", 2), ("t", 3)])
    script.run(1_000)
    assert verdicts(script) == []
    script.holds(6_000, "a", [("t", 0), ("t", 1)])
    script.run(60_000)
    assert verdicts(script) == ["#1 agrees None 6000"]
    assert script.row().strategy_verdict == "proven"


def test_members_that_do_not_follow_in_time_differ_then_and_agree_when_they_do() -> None:
    script = two_members()
    script.holds(100, "a", [("t", 0), ("t", 1), ("t", 2), ("t", 3)])
    script.holds(200, "b", [("t", 3)])
    script.run(30_011)
    assert [one.verdict for one in script.audits()] == ["differs"]
    assert [(one.queue_id, one.kind) for one in script.audits()[0].differing] == [
        (2, "unexpected_owner"),
        (3, "duplicate"),
    ]
    script.holds(40_000, "a", [("t", 0), ("t", 1)])
    script.holds(40_000, "b", [("t", 2), ("t", 3)])
    script.run(50_000)
    assert verdicts(script) == ["#1 agrees None 40000"]


def test_a_generation_that_is_overtaken_while_members_still_follow_is_marked_so() -> None:
    script = two_members()
    script.holds(100, "a", [("t", 0), ("t", 1), ("t", 2), ("t", 3)])
    script.holds(200, "b", [])
    script.join(10_000, "c")
    script.run(10_001)
    [audit] = script.audits()
    assert (audit.generation, audit.verdict, audit.reason) == (1, "differs", "not_yet_followed")
    assert audit.detail == "The next generation came after 9990 ms."
    assert audit.missing == 0
    assert script.row().strategy_verdict is None


def test_a_generation_that_not_all_members_report_has_no_verdict() -> None:
    script = two_members()
    script.holds(100, "a", [("t", 0), ("t", 1)])
    script.leave(10_000, "b")
    script.run(10_001)
    assert verdicts(script) == ["#1 not_recomputable members_not_reporting 10000"]
    assert script.audits()[0].detail == "1 of 2 members have reported."


def test_groups_that_report_nothing_are_not_audited() -> None:
    script = two_members()
    script.join(10_000, "c")
    script.run(90_000)
    assert script.audits() == []


def test_of_an_unknown_strategy_it_names_what_is_wrong_in_any_case() -> None:
    script = kafka()
    reported_by = {"a": [("t", 0), ("t", 1)], "b": [("t", 1), ("t", 2)]}
    script.snapshot(10, 1, BOTH, reported_by, strategy="my.own")
    script.run(100)
    [audit] = script.audits()
    assert (audit.verdict, audit.reason) == ("not_recomputable", "custom_strategy")
    assert audit.differing == [
        AuditedQueue("t", None, 1, "duplicate", [], ["a", "b"]),
        AuditedQueue("t", None, 3, "missing", [], []),
    ]
    row = script.row()
    assert (row.strategy_verdict, row.verdict_reason) == ("not_recomputable", "custom_strategy")


def test_an_owner_without_a_subscription_is_wrong_in_any_case() -> None:
    script = kafka(2)
    script.snapshot(10, 1, {"a": ["t"], "b": ["u"]}, {"a": [("t", 0)], "b": [("t", 1)]}, strategy="my.own")
    script.run(100)
    assert script.audits()[0].differing == [AuditedQueue("t", None, 1, "unexpected_owner", [], ["b"])]


def test_a_failed_strategy_is_no_verdict() -> None:
    script = Script("rocketmq")
    script.queues(0, "t", 2)
    script.settings(1, strategy="MACHINE_ROOM", strategy_settings={"rooms": 3})
    for member in ("a", "b"):
        script.join(10, member)
        script.holds(20, member, [("t", 0)])
    script.run(60_000)
    assert script.rebalances[-1].status == "failed"
    assert [(one.verdict, one.reason) for one in script.audits()] == [("not_recomputable", "strategy_failed")]


def test_a_generation_that_comes_after_newer_ones_has_no_verdict() -> None:
    script = kafka()
    script.snapshot(10, 1, BOTH, assigned(a="0 1", b="2 3"), strategy="range")
    script.snapshot(100, 3, BOTH, assigned(a="0 1", b="2 3"), strategy="range")
    script.run(200)
    script.snapshot(50, 2, BOTH, assigned(a="0 1", b="2 3"), strategy="range")
    script.run(300)
    assert sorted(verdicts(script)) == [
        "#1 agrees None 10",
        "#2 not_recomputable reported_late 200",
        "#3 agrees None 100",
    ]


def test_a_deleted_group_ends_the_verdict_on_its_strategy() -> None:
    script = kafka()
    script.snapshot(10, 1, BOTH, assigned(a="0 1", b="2 3"), strategy="range")
    script.run(50)
    script.delete(60)
    script.run(100)
    assert script.group.verdict is None
    assert script.group.audit is None


def test_epochs_of_the_new_protocol_are_audited_by_their_targets() -> None:
    script = RecordScript()
    script.first_member()
    script.second_member()
    script.waiting = [one for one in script.waiting if one.event_time < T0 + 30]  # b never gets its queues
    script.delete_member(40, "b")
    script.epoch(40, 3)
    script.member(41, "c")
    script.epoch(41, 4)
    script.target(41, 4, {"a": "0 1", "c": "2 3"})
    script.current(42, "a", 4, "0 1")
    script.current(43, "c", 4, "2 3")
    script.run(60)
    agreement = {row.generation: row.agrees for row in script.rebalances}
    audits = {one.generation: one.verdict for one in script.audits()}
    assert agreement == {1: True, 2: True, 3: None, 4: True}
    assert audits[1] == audits[2] == audits[4] == "agrees"
    assert audits.get(3, "not_recomputable") == "not_recomputable"
    assert (script.row().strategy_verdict, script.row().verdict_generations) == ("proven", 2)
