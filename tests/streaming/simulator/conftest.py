"""Lives that several tests read, each lived once."""

from __future__ import annotations

import pytest

from streaming.simulator import Fleet
from streaming.simulator.timeline import Delivery
from tests.streaming.simulator.lives import SEEDS, OneCluster, lived


@pytest.fixture(scope="session", params=SEEDS)
def life(request: pytest.FixtureRequest) -> tuple[Fleet, list[Delivery]]:
    return lived(request.param, speed=2.0)


@pytest.fixture
def alone() -> OneCluster:
    return OneCluster()
