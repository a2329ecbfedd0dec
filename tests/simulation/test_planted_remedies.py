"""Advice names the setting that would have helped first; `python -m tests.simulation.planted_remedies` has figures."""

from __future__ import annotations

import pytest

from tests.simulation.planted_remedies import FATES, Fate, first_advice, right_share


@pytest.mark.parametrize("seeds", [range(1), pytest.param(range(1, 51), marks=[pytest.mark.slow])], ids=["1", "50"])
@pytest.mark.parametrize("fate", FATES, ids=lambda fate: fate.name)
def test_the_planted_remedy_comes_first_and_healthy_groups_get_none(fate: Fate, seeds: range) -> None:
    first = first_advice(fate, seeds)
    assert right_share(fate, first) >= (0.95 if fate.remedies else 1.0), first
