"""A whole fleet: the same seed is the same life, its events are those of the contract, and it knows no core."""

from __future__ import annotations

import ast
from pathlib import Path

from streaming.simulator import ExpectedRebalance, Fleet
from streaming.simulator.serializer import line
from streaming.simulator.truth import truth_lines
from tests.streaming.simulator.lives import SEEDS, lived
from udfs.model.journal import TRIGGER_ORDER


def test_another_seed_gives_another_life() -> None:
    assert lived(1)[0].truth != lived(2)[0].truth


def test_it_does_not_matter_in_which_steps_life_is_read() -> None:
    whole, stepwise = Fleet(3), Fleet(3)
    at_once = [line(delivery) for delivery in whole.deliveries_until(whole.start_ms + 60_000)]
    in_steps = [
        line(delivery)
        for step in range(0, 60_001, 250)
        for delivery in stepwise.deliveries_until(stepwise.start_ms + step)
    ]
    assert in_steps == at_once
    assert stepwise.truth == whole.truth


def test_all_kinds_of_causes_come_up() -> None:
    kinds = {
        cause.kind for seed in SEEDS for rebalance in lived(seed, speed=2.0)[0].truth for cause in rebalance.causes
    }
    # The leaders of the simulator know each topic at once: none of them learns of one later.
    assert kinds == set(TRIGGER_ORDER) - {"late_evidence", "topic_learned"}


def test_the_simulator_imports_nothing_of_the_core_but_the_events_and_the_systems() -> None:
    import streaming.simulator

    folder = Path(streaming.simulator.__file__).parent
    imported = set()
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                imported.add(node.module or "")
            elif isinstance(node, ast.Import):
                imported |= {name.name for name in node.names}
    assert {name for name in imported if name.split(".")[0] == "udfs"} == {"udfs.model.events", "udfs.model.systems"}


def test_truth_is_drained_once_and_complete_at_the_end() -> None:
    whole, piecemeal = Fleet(8), Fleet(8)
    taken: list[ExpectedRebalance] = []
    for step in range(1_000, 120_001, 1_000):
        list(piecemeal.events_until(piecemeal.start_ms + step))
        taken += piecemeal.drain_truth()
    list(whole.events_until(whole.start_ms + 120_000))
    assert sorted(truth_lines([rebalance]) for rebalance in taken) == sorted(
        truth_lines([rebalance]) for rebalance in whole.truth
    )
