"""A keeper of nodes, and its monitor."""

from __future__ import annotations

import pytest

from tests.streaming.collectors.metaq.keeper import Keeper, Monitor


@pytest.fixture
def keeper() -> Keeper:
    return Keeper()


@pytest.fixture
def monitor(keeper: Keeper) -> Monitor:
    return Monitor(keeper)
