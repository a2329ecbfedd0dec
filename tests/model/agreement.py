"""The core compared with its model on the histories of a range of seeds."""

from __future__ import annotations

import pytest

from tests.model.check import cuts, difference, one_batch, smallest, story
from tests.model.histories import history
from tests.model.reference import model_tables

# ``--histories`` and ``--first-seed`` choose other seeds; the slow run begins where the quick one ends.
QUICK, SLOW = 1_470, 100_000
# Two test files play half of the seeds each, so that two workers share them.
PARTS = 20


def agree(seed: int, left_out: int | None = None) -> None:
    """Fail with the smallest history that shows a difference.

    Args:
        left_out: The number of the cut in which it is not played; None for all three.
    """
    made = history(seed)
    # Late rows depend on the cut; all other rows are the same for every cut.
    whole = None if "late" in made.features else model_tables(one_batch(made), made.how)
    for number, (batches, how) in enumerate(cuts(made)):
        if number == left_out or not difference(batches, how, whole):
            continue
        less = smallest(batches, how)
        rows = "\n  ".join(difference(less, how))
        pytest.fail(f"seed {seed}, cut {number}, {sorted(made.features)}:\n{story(less)}\n  {rows}", pytrace=False)


def seeds_of(config: pytest.Config, part: int, default: int, begin: int) -> range:
    """Return the seeds of one part of the histories asked for."""
    count = config.getoption("--histories") or default
    first = config.getoption("--first-seed")
    first = begin if first is None else first
    return range(first + part * count // PARTS, first + (part + 1) * count // PARTS)
