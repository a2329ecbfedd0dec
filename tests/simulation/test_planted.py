"""Planted faults are found, with their culprits, and nothing else; `python -m tests.simulation.planted` has figures."""

from __future__ import annotations

import pytest

from tests.simulation.planted import KINDS, measured


@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 52), marks=[pytest.mark.slow])], ids=["2", "50"])
def test_planted_faults_are_found_and_nothing_else(seeds: range) -> None:
    found, unhealthy = measured(seeds)
    assert {kind for kind, figures in found.items() if figures.planted} == {*KINDS}
    for kind, figures in found.items():
        assert figures.right >= 0.99 * max(figures.planted, figures.opened), (kind, figures)
    assert unhealthy == []
