"""The check of found rebalances against the truth detects each kind of error."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from streaming.simulator.truth import Cause, ExpectedRebalance
from tests.simulation.check import check


def expected(
    time: int = 100, causes: tuple[Cause, ...] = (Cause("member_left", "a"),), **more: Any
) -> ExpectedRebalance:
    return ExpectedRebalance(cluster="c", system="kafka", group_id="g", event_time=time, causes=list(causes), **more)


def found(time: int = 100, kinds: tuple[tuple[str, ...], ...] = (("member_left", "a"),), **more: Any) -> dict[str, Any]:
    return {
        "cluster": "c",
        "group_id": "g",
        "event_time": time,
        "generation": 1,
        "generation_source": "counted",
        "trigger": kinds[0][0],
        "triggers": [
            {"kind": kind, "member_id": names[0] if names else None, "topic": None, "detail": None}
            for kind, *names in kinds
        ],
        "members_after": 2,
        **more,
    }


def test_a_rebalance_found_as_it_happened_is_right() -> None:
    verdict = check([found()], [expected(generation=1, members_after=2)])
    assert verdict.holds
    assert verdict.right == 1


def test_times_of_tables_are_understood() -> None:
    at = datetime.datetime(1970, 1, 1, 0, 0, 0, 100_000, tzinfo=datetime.UTC)
    assert check([found(at)], [expected()]).holds  # type: ignore[arg-type]
    assert check([found("1970-01-01T00:00:00.100Z")], [expected()]).holds  # type: ignore[arg-type]


def test_a_rebalance_that_was_not_found_is_missing() -> None:
    assert len(check([], [expected()]).missing) == 1


def test_a_rebalance_that_never_happened_is_invented() -> None:
    assert len(check([found()], []).invented) == 1


def test_the_same_twice_is_once_invented() -> None:
    verdict = check([found(), found()], [expected()])
    assert (verdict.right, len(verdict.invented)) == (1, 1)


def test_a_millisecond_beside_is_missing_and_invented() -> None:
    verdict = check([found(101)], [expected(100)])
    assert (len(verdict.missing), len(verdict.invented)) == (1, 1)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (found(kinds=(("session_expired", "a"),)), "lacks member_left a"),
        (found(kinds=(("member_left", "b"),)), "lacks member_left a"),
        (found(kinds=(("member_left", "a"), ("member_joined", "b"))), "invents member_joined b"),
        (found(trigger="member_joined"), "main cause member_joined, not member_left"),
        (found(generation=2), "generation 2, not 1"),
        (found(members_after=3), "members_after 3, not 2"),
        (found(generation_source="reported"), "generation reported, not counted"),
    ],
)
def test_each_difference_is_named(row: dict[str, Any], problem: str) -> None:
    verdict = check([row], [expected(generation=1, members_after=2)])
    assert problem in verdict.report()
    assert not verdict.holds


def test_rebalances_newer_than_the_clock_are_not_required() -> None:
    assert check([], [expected(100)], until={"c": 100}).holds
    assert not check([], [expected(100)], until={"c": 101}).holds


def test_evidence_that_came_late_is_found_in_time_or_later() -> None:
    late = [expected(100, late_until=300)]
    assert check([found(100)], late).holds
    assert check([found(250, kinds=(("member_left", "a"), ("late_evidence",)))], late).holds
    assert not check([found(301, kinds=(("member_left", "a"), ("late_evidence",)))], late).holds
    assert not check([], late).holds


def test_evidence_that_came_late_may_fall_together_with_something_else() -> None:
    both = [expected(100, late_until=300), expected(200, (Cause("member_joined", "b"),))]
    row = found(200, kinds=(("member_left", "a"), ("member_joined", "b"), ("late_evidence",)))
    assert check([row], both).holds


def test_rebalances_found_by_only_some_readers_are_allowed_but_not_required() -> None:
    perhaps = [expected(100, (Cause("session_expired", "a"),), required=False)]
    assert check([], perhaps).holds
    assert check([found(100, kinds=(("session_expired", "a"),))], perhaps).holds
    assert not check([found(100, kinds=(("session_expired", "b"),))], perhaps).holds


def test_other_kinds_that_the_evidence_allows_are_right_but_only_those() -> None:
    departed = [expected(100, (Cause("member_gone", "a", also=("session_expired",)),))]
    assert check([found(kinds=(("session_expired", "a"),))], departed).holds
    assert not check([found(kinds=(("member_left", "a"),))], departed).holds
