"""The core decides as its model from random records of a coordinator of Kafka's new protocol, whichever way they go."""

from __future__ import annotations

import pytest

from tests.model.agreement import PARTS, seeds_of
from tests.model.new_protocol_agreement import differing
from tests.model.new_protocol_histories import new_protocol_history
from tests.model.travels import first_difference

QUICK, SLOW = 200, 10_000
TRAVELS, SLOW_TRAVELS = 30, 1_000


def agree(seeds: range) -> None:
    """Fail with what the core does otherwise."""
    found = ((seed, differing(new_protocol_history(seed))) for seed in seeds)
    lines = [f"seed {seed}, {shown}" for seed, shown in found if shown is not None]
    if lines:
        pytest.fail("\n".join(lines), pytrace=False)


def travel(seeds: range) -> None:
    """Fail with the smallest part of each history that shows a difference."""
    found = ((seed, first_difference(new_protocol_history(seed))) for seed in seeds)
    lines = [f"seed {seed}:\n{rows}" for seed, rows in found if rows is not None]
    if lines:
        pytest.fail("\n".join(lines), pytrace=False)


@pytest.mark.parametrize("part", range(PARTS))
def test_the_core_decides_as_the_model_from_records(part: int, pytestconfig: pytest.Config) -> None:
    agree(seeds_of(pytestconfig, part, QUICK, 0))


@pytest.mark.slow
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("part", range(PARTS))
def test_the_core_decides_as_the_model_from_very_many_records(part: int, pytestconfig: pytest.Config) -> None:
    agree(seeds_of(pytestconfig, part, SLOW, QUICK))


@pytest.mark.parametrize("part", range(PARTS))
def test_rows_of_records_do_not_depend_on_their_way(part: int, pytestconfig: pytest.Config) -> None:
    travel(seeds_of(pytestconfig, part, TRAVELS, 0))


@pytest.mark.slow
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("part", range(PARTS))
def test_rows_of_very_many_records_do_not_depend_on_their_way(part: int, pytestconfig: pytest.Config) -> None:
    travel(seeds_of(pytestconfig, part, SLOW_TRAVELS, TRAVELS))
