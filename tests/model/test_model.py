"""The core is what its model is, on random histories, however they are cut into batches."""

from __future__ import annotations

import pytest

from tests.model.check import cuts, difference, one_batch, smallest, story
from tests.model.histories import history
from tests.model.reference import model_tables

# ``--histories`` and ``--first-seed`` choose others; the slow run begins where the quick one ends.
QUICK, SLOW = 2_000, 100_000
PARTS = 20


def agree(seed: int) -> None:
    """Fail with the smallest history that shows a difference."""
    made = history(seed)
    # What comes late depends on the cut; all else is the same in every one.
    whole = None if "late" in made.features else model_tables(one_batch(made))
    for number, (batches, shards) in enumerate(cuts(made)):
        if not difference(batches, shards, whole):
            continue
        less = smallest(batches, shards)
        rows = "\n  ".join(difference(less, shards))
        pytest.fail(f"seed {seed}, cut {number}, {sorted(made.features)}:\n{story(less)}\n  {rows}", pytrace=False)


def seeds_of(config: pytest.Config, part: int, default: int, begin: int) -> range:
    """Return the seeds of one part of the histories asked for."""
    count = config.getoption("--histories") or default
    first = config.getoption("--first-seed")
    first = begin if first is None else first
    return range(first + part * count // PARTS, first + (part + 1) * count // PARTS)


@pytest.mark.parametrize("part", range(PARTS))
def test_the_core_decides_as_the_model_in_each_of_three_cuts(part: int, pytestconfig: pytest.Config) -> None:
    for seed in seeds_of(pytestconfig, part, QUICK, 0):
        agree(seed)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("part", range(PARTS))
def test_the_core_decides_as_the_model_in_very_many_histories(part: int, pytestconfig: pytest.Config) -> None:
    for seed in seeds_of(pytestconfig, part, SLOW, QUICK):
        agree(seed)
