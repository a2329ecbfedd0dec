"""Rows do not depend on cuts, shard counts or exports in between, whatever a group is first known by, however late."""

from __future__ import annotations

import pytest

from tests.model.agreement import PARTS, seeds_of
from tests.model.travels import first_difference, travelling_history

QUICK, SLOW = 100, 10_000


def agree(seed: int) -> None:
    """Fail with the smallest part of a history that shows a difference."""
    found = first_difference(travelling_history(seed))
    if found is not None:
        pytest.fail(f"seed {seed}:\n{found}", pytrace=False)


@pytest.mark.parametrize("part", range(PARTS))
def test_rows_do_not_depend_on_the_way_of_a_history(part: int, pytestconfig: pytest.Config) -> None:
    for seed in seeds_of(pytestconfig, part, QUICK, 0):
        agree(seed)


@pytest.mark.slow
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("part", range(PARTS))
def test_rows_do_not_depend_on_the_way_of_very_many_histories(part: int, pytestconfig: pytest.Config) -> None:
    for seed in seeds_of(pytestconfig, part, SLOW, 0):
        agree(seed)
