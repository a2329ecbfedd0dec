"""Histories of which events came up to a minute late end as in order, but for what the rulings allow."""

from __future__ import annotations

import pytest

from tests.model.agreement import PARTS, seeds_of
from tests.model.ends import differing_ends, late_history

QUICK, SLOW = 200, 10_000


def agree(seeds: range) -> None:
    """Fail with what ends otherwise."""
    found = ((seed, differing_ends(late_history(seed))) for seed in seeds)
    differing = [f"seed {seed}: {end}" for seed, ends in found for end in ends]
    if differing:
        pytest.fail("\n".join(differing), pytrace=False)


@pytest.mark.parametrize("part", range(PARTS))
def test_late_histories_end_as_in_order(part: int, pytestconfig: pytest.Config) -> None:
    agree(seeds_of(pytestconfig, part, QUICK, 0))


@pytest.mark.slow
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("part", range(PARTS))
def test_very_many_late_histories_end_as_in_order(part: int, pytestconfig: pytest.Config) -> None:
    agree(seeds_of(pytestconfig, part, SLOW, 0))
