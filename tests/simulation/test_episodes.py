"""Planted episodes are found and named; `python -m tests.simulation.episodes` has the figures of many fleets."""

from __future__ import annotations

import pytest

from tests.simulation.episodes import measured


@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 52), marks=[pytest.mark.slow])], ids=["2", "50"])
def test_planted_episodes_are_found_and_nothing_else(seeds: range) -> None:
    found, flapping = measured(seeds)
    for kind, figures in found.items():
        assert figures.named >= 0.99 * max(figures.planted, figures.found), (kind, figures)
    assert flapping == 0
