"""Planted episodes are found and named; `python -m tests.simulation.episodes` has the figures of many fleets."""

from __future__ import annotations

from tests.simulation.episodes import measured


def test_planted_episodes_are_found_and_nothing_else() -> None:
    found, flapping = measured(range(2))
    for figures in found.values():
        assert figures.planted == figures.found == figures.right == figures.named
    assert flapping == 0
