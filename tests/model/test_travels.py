"""Rows do not depend on cuts, shard counts or exports in between, whatever a group is first known by, however late."""

from __future__ import annotations

import pytest

from tests.model.agreement import PARTS, seeds_of
from tests.model.travels import first_difference, travelling_history

QUICK, SLOW = 100, 10_000


def agree(seeds: range) -> None:
    """Fail with the smallest part of each history that shows a difference."""
    found = ((seed, first_difference(travelling_history(seed))) for seed in seeds)
    differing = [f"seed {seed}:\n{rows}" for seed, rows in found if rows is not None]
    if differing:
        pytest.fail("\n".join(differing), pytrace=False)


@pytest.mark.parametrize("part", range(PARTS))
def test_rows_do_not_depend_on_the_way_of_a_history(part: int, pytestconfig: pytest.Config) -> None:
    agree(seeds_of(pytestconfig, part, QUICK, 0))


@pytest.mark.slow
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("part", range(PARTS))
def test_rows_do_not_depend_on_the_way_of_very_many_histories(part: int, pytestconfig: pytest.Config) -> None:
    agree(seeds_of(pytestconfig, part, SLOW, 0))
