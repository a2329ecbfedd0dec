"""Advice names the setting that would have helped first; `python -m tests.simulation.planted_remedies` has figures."""

from __future__ import annotations

import pytest

from streaming.history.advice_texts import heading
from tests.simulation.planted_remedies import FATES, Fate, advised, first_advice, idle_surplus, right_share


@pytest.mark.parametrize("seeds", [range(1), pytest.param(range(1, 51), marks=[pytest.mark.slow])], ids=["1", "50"])
@pytest.mark.parametrize("fate", FATES, ids=lambda fate: fate.name)
def test_the_planted_remedy_comes_first_and_healthy_groups_get_none(fate: Fate, seeds: range) -> None:
    first = first_advice(fate, seeds)
    assert right_share(fate, first) >= (0.95 if fate.remedies else 1.0), first


@pytest.mark.parametrize(
    ("visitors", "said"),
    [(0, " 3 members had no queue for 95 % of that time: the group would do as well without"), (3, "")],
)
def test_members_that_never_have_a_queue_are_named_and_those_of_half_a_day_are_not(visitors: int, said: str) -> None:
    found = advised(Fate("surplus", lambda chance: idle_surplus(chance, visitors), frozenset()), 0)
    assert ("had no queue" in heading(found, 7)) == bool(said)
    assert said in heading(found, 7)
