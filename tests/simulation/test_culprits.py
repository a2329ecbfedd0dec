"""The finding names the planted culprit; `python -m tests.simulation.culprits 300` has the figure of many cases."""

from __future__ import annotations

from tests.simulation.culprits import KINDS, measured


def test_the_culprit_is_the_planted_one() -> None:
    assert measured(2) == dict.fromkeys(KINDS, (2, 2))
