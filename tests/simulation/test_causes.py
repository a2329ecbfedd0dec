"""Every rebalance that the script of a fleet made is found with its causes, and no other."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import pytest

from streaming.simulator import Fleet
from tests.core_config import core_config
from tests.simulation.check import check
from tests.simulation.core_run import CoreRun, run_core

SPAN_MS = 240_000
SEEDS = range(8)
MORE_SEEDS = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 48)]
# Each shard of each cluster is decoded and written in each batch; two shards show everything that eight do.
RULES = core_config(shards=2)
_LEADERS = ("kafka.range", "kafka.roundrobin", "kafka.cooperative-sticky")


def live(seed: int, **how: object) -> tuple[Fleet, list]:  # type: ignore[type-arg]
    fleet = Fleet(seed, speed=2.0, **how)  # type: ignore[arg-type]
    return fleet, [*fleet.deliveries_until(fleet.start_ms + SPAN_MS), *fleet.finish()]


Played: TypeAlias = Callable[[int], tuple[Fleet, CoreRun]]


@pytest.fixture(scope="module")
def played() -> Played:
    """A fleet by its seed, and its run: in batches of five seconds as it is delivered, so late events come late."""

    @cache
    def play(seed: int) -> tuple[Fleet, CoreRun]:
        fleet, deliveries = live(seed, groups=15, members=75)
        return fleet, run_core(deliveries, RULES, 5_000)

    return play


@pytest.mark.parametrize("seed", [*SEEDS, *MORE_SEEDS])
def test_every_cause_is_found_and_none_invented(played: Played, seed: int) -> None:
    fleet, run = played(seed)
    verdict = check(run.rows(), fleet.truth)
    assert verdict.holds, verdict.report()
    assert verdict.right > 100
    # Simulated leaders assign by code of their own, so the computed assignment must equal the reported one.
    compared = [rebalance.agrees for rebalance in run.rebalances if rebalance.strategy in _LEADERS]
    assert False not in compared
    assert True in compared


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_read_in_one_piece_nothing_is_late(seed: int) -> None:
    fleet, deliveries = live(seed, groups=15, members=75)
    run = run_core(deliveries, RULES, None)
    in_order = [rebalance for rebalance in fleet.truth if rebalance.required]
    for rebalance in in_order:
        rebalance.late_until = None
    verdict = check(run.rows(), in_order)
    assert verdict.holds, verdict.report()
    assert not [rejected for rejected in run.rejected if rejected.reason == "late"]


def test_only_late_events_are_rejected(played: Played) -> None:
    _, run = played(2)
    assert {rejected.reason for rejected in run.rejected} <= {"late"}


@pytest.mark.parametrize("seed", [3, 4, 5])
def test_a_silence_of_a_source_is_a_finding_from_its_last_event_on(seed: int) -> None:
    fleet, deliveries = live(seed, groups=6, members=30)
    # The sources of these fleets are silent for eight seconds; in the first of them none is.
    after = 7_000
    run = run_core(deliveries, core_config(shards=2, source_silent_after_ms=after), 5_000)
    opened = sorted(
        (change.cluster, change.body.opened_at)
        for change in run.changes
        if change.body.__class__.__name__ == "FindingOpened" and change.body.finding == "source_silent"
    )
    long = [silence for silence in fleet.silences if silence.silent_to - silence.silent_from > after]
    assert opened == sorted((silence.cluster, silence.silent_from + after) for silence in long)
    assert len(opened) == (seed > 3)


def test_late_evidence_comes_up_and_is_listed(played: Played) -> None:
    """If this failed, the check above would prove nothing."""
    late = 0
    for seed in SEEDS[:6]:
        _, run = played(seed)
        late += sum(cause.kind == "late_evidence" for rebalance in run.rebalances for cause in rebalance.triggers)
        if late:
            assert [rejected for rejected in run.rejected if rejected.reason == "late"]
            break
    assert late
