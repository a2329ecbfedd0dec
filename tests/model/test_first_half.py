"""The core is what its model is, on random histories, however they are cut into batches: the first half of them."""

from __future__ import annotations

import pytest

from tests.model.agreement import PARTS, QUICK, SLOW, agree, seeds_of

HALF = range(PARTS // 2)


@pytest.mark.parametrize("part", HALF)
def test_the_core_decides_as_the_model_in_two_of_three_cuts(part: int, pytestconfig: pytest.Config) -> None:
    # More histories find more than a third cut of each; `make soak` plays all three.
    for seed in seeds_of(pytestconfig, part, QUICK, 0):
        agree(seed, left_out=seed % 3)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("part", HALF)
def test_the_core_decides_as_the_model_in_very_many_histories(part: int, pytestconfig: pytest.Config) -> None:
    for seed in seeds_of(pytestconfig, part, SLOW, QUICK):
        agree(seed)
