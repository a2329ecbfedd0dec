"""What the audits of a group say together of its strategy."""

from __future__ import annotations

from udfs.group.state.audit_results import CurrentAudit, StrategyVerdict
from udfs.group.state.group import Group
from udfs.group.state.strategy_verdict import PROVEN_AGAIN_AFTER, verdict_after, verdict_of, with_verdict
from udfs.model.journal import GroupChanged

RANGE = "kafka.range"


def after(*audits: CurrentAudit, strategy: str = RANGE) -> StrategyVerdict | None:
    found: StrategyVerdict | None = None
    for audit in audits:
        found = verdict_after(found, strategy, audit)
    return found


def agrees(at: int, *, is_evidence: bool = True) -> CurrentAudit:
    return CurrentAudit("agrees", is_evidence, at)


def differs(at: int, *, is_evidence: bool = True) -> CurrentAudit:
    return CurrentAudit("differs", is_evidence, at, "another_library")


def test_a_strategy_is_proven_by_each_generation_that_agrees() -> None:
    found = after(agrees(1), agrees(2), agrees(3))
    assert found == StrategyVerdict(RANGE, "proven", 3, 1)


def test_a_difference_of_the_strategy_itself_contradicts_it_since_the_first() -> None:
    found = after(agrees(1), differs(2), agrees(3), differs(4))
    assert found == StrategyVerdict(RANGE, "contradicted", 2, 2, "another_library")


def test_it_is_proven_again_by_as_many_agreeing_generations_in_a_row() -> None:
    again = [agrees(at) for at in range(10, 10 + PROVEN_AGAIN_AFTER)]
    assert (after(differs(1), *again[:-1]) or StrategyVerdict("", "", 0, 0)).kind == "contradicted"
    assert after(differs(1), *again) == StrategyVerdict(RANGE, "proven", PROVEN_AGAIN_AFTER, 10)
    interrupted = after(differs(1), *again[:-1], differs(98), *again[:-1])
    assert interrupted is not None
    assert (interrupted.kind, interrupted.since) == ("contradicted", 1)


def test_generations_without_evidence_change_no_verdict() -> None:
    assert after(agrees(1, is_evidence=False)) is None
    assert after(agrees(1), differs(2, is_evidence=False)) == StrategyVerdict(RANGE, "proven", 1, 1)
    passing = CurrentAudit("not_recomputable", False, 2, "topics_unknown")
    assert after(agrees(1), passing) == StrategyVerdict(RANGE, "proven", 1, 1)
    assert after(passing) == StrategyVerdict(RANGE, "not_recomputable", 1, 2, "topics_unknown")
    assert after(passing, agrees(3)) == StrategyVerdict(RANGE, "proven", 1, 3)


def test_another_strategy_begins_anew() -> None:
    before = after(differs(1))
    assert verdict_after(before, "kafka.sticky", agrees(2)) == StrategyVerdict("kafka.sticky", "proven", 1, 2)


def test_a_group_shows_it_with_the_current_generation() -> None:
    group = Group(verdict=StrategyVerdict(RANGE, "proven", 4, 1_000), audit=agrees(5_000), last_strategy=RANGE)
    assert verdict_of(group) == StrategyVerdict(RANGE, "proven", 5, 1_000)
    row = with_verdict(GroupChanged(system="kafka", state="stable"), group)
    assert (row.strategy_verdict, row.verdict_generations, row.verdict_from, row.verdict_reason) == (
        "proven",
        5,
        1_000,
        None,
    )
