"""The check of a run of chaos finds missing, invented and wrong rows."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.crash.chaos_script import script
from tests.crash.chaos_truth import Life, Row, Truth, merged

_THINGS = ("collector", "job", "broker-a", "name server")
_STAYS = Life(begun_ms=1_000, listed=[(2_000, 90_000)])
_COMES = Life(begun_ms=20_000, ended_ms=40_000, ending="is killed", listed=[(21_000, 40_000)])
_TRUTH = Truth(lives={"stays": _STAYS, "comes": _COMES}, clocks=range(5_000, 95_000, 5_000))


def _row(generation: int, at_ms: int, *triggers: tuple[str, str | None]) -> Row:
    return {
        "generation": generation,
        "event_time": datetime.fromtimestamp(at_ms / 1_000, UTC),
        "status": "completed",
        "error": None,
        "triggers": [{"kind": kind, "member_id": member} for kind, member in triggers],
    }


_CREATED = _row(1, 5_000, ("group_created", None), ("member_joined", "stays"))
_JOINED = _row(2, 25_000, ("member_joined", "comes"))
_DEPARTED = _row(3, 45_000, ("member_gone", "comes"))
_REPORTED = [_CREATED, _JOINED, _DEPARTED]


def test_true_rows_are_no_contradiction() -> None:
    assert _TRUTH.contradictions(_REPORTED) == []
    assert _TRUTH.owed() == ["stays", "comes"]


def test_a_member_that_was_there_for_less_than_two_polls_may_be_reported_or_not() -> None:
    brief = replace(_COMES, listed=[(21_000, 31_000)])
    truth = replace(_TRUTH, lives={"stays": _STAYS, "comes": brief})
    assert truth.owed() == ["stays"]
    assert truth.contradictions([_CREATED]) == []
    assert truth.contradictions(_REPORTED) == []
    assert truth.contradictions([_CREATED, _JOINED]), "who came and went must have gone"


def test_a_member_that_stopped_has_expired_only_where_it_could_not_leave() -> None:
    reported = [_CREATED, _JOINED, _row(3, 45_000, ("session_expired", "comes"))]
    stopped = replace(_TRUTH, lives={"stays": _STAYS, "comes": replace(_COMES, ending="stops")})
    assert stopped.contradictions(reported)
    assert replace(stopped, stops_expire=[(39_000, 41_000)]).contradictions(reported) == []


def test_queues_move_only_when_brokers_come_and_go() -> None:
    reported = [*_REPORTED, _row(4, 50_000, ("queue_count_changed", None))]
    assert _TRUTH.contradictions(reported)
    assert replace(_TRUTH, queues_moved=[(48_000, 60_000)]).contradictions(reported) == []


def test_a_session_that_ran_out_by_itself_ends_and_begins_again() -> None:
    reported = [*_REPORTED, _row(4, 50_000, ("session_expired", "stays")), _row(5, 60_000, ("member_joined", "stays"))]
    assert _TRUTH.contradictions(reported)
    truth = replace(_TRUTH, lives={"stays": replace(_STAYS, given_up=1), "comes": _COMES})
    assert truth.contradictions(reported) == []


@pytest.mark.parametrize(
    "reported",
    [
        pytest.param([_CREATED], id="neither came nor went"),
        pytest.param([_CREATED, _JOINED], id="did not go"),
        pytest.param([_CREATED, _row(2, 45_000, ("member_gone", "comes"))], id="went and never came"),
        pytest.param(
            [_CREATED, _JOINED, _DEPARTED, _row(4, 50_000, ("member_gone", "stays"))], id="one who stays went"
        ),
        pytest.param([_CREATED, _JOINED, _DEPARTED, _row(4, 50_000, ("member_joined", "comes"))], id="came again"),
        pytest.param([_CREATED, _row(2, 19_000, ("member_joined", "comes")), _DEPARTED], id="came too early"),
        pytest.param([_CREATED, _JOINED, _row(3, 39_000, ("member_gone", "comes"))], id="went too early"),
        pytest.param([_CREATED, _JOINED, _row(3, 45_000, ("member_left", "comes"))], id="was killed, not stopped"),
        pytest.param([*_REPORTED, _row(4, 50_000, ("member_joined", "nobody"))], id="nobody came"),
        pytest.param([*_REPORTED, _row(4, 50_000, ("subscription_changed", "stays"))], id="nobody subscribed anew"),
        pytest.param([*_REPORTED, _row(4, 50_000, ("group_created", None))], id="created twice"),
        pytest.param([_CREATED, _JOINED, _row(4, 45_000, ("member_gone", "comes"))], id="a generation is missing"),
    ],
)
def test_a_different_report_is_a_contradiction(reported: list[Row]) -> None:
    assert _TRUTH.contradictions(reported)


def test_a_short_return_counts_as_continuous_absence() -> None:
    assert merged([(50, 60), (10, 20), (25, 30)], 5) == [(10, 30), (50, 60)]
    assert merged([(10, 20), (26, 30)], 5) == [(10, 20), (26, 30)]


@pytest.mark.parametrize("seed", range(20))
def test_a_script_leaves_everything_up_and_nothing_out(seed: int) -> None:
    orders = script(seed, 60.0, _THINGS)
    assert orders == script(seed, 60.0, _THINGS)
    last = {order.target: order.what for order in orders}
    assert all(last[thing] == "starts" for thing in _THINGS)
    up = dict.fromkeys(_THINGS, True)
    for order in orders:
        assert up.get(order.target, False) != (order.what == "starts")
        up[order.target] = order.what == "starts"
