"""Planted standstills are found, and nothing else; `python -m tests.simulation.standstills` has the figure of many."""

from __future__ import annotations

from tests.simulation.standstills import KINDS, measured


def test_a_planted_standstill_is_found_and_nothing_else() -> None:
    assert measured(1) == dict.fromkeys(KINDS, (3, 3, 3))
