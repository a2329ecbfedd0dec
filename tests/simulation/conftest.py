"""The recorded day, played once."""

from __future__ import annotations

import pytest

from tests.simulation.core_run import CoreRun
from tests.simulation.recorded_day import RULES, batches, play


@pytest.fixture(scope="session")
def day() -> CoreRun:
    """Return the run of the whole day."""
    return play(CoreRun(RULES), batches())
