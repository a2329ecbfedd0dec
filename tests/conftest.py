"""Fixtures for every test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import hypothesis
import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.job.commands import ManyRuns

# No example has a time limit: how long one takes on busy cores says nothing of the code.
hypothesis.settings.register_profile("without-deadlines", deadline=None)
hypothesis.settings.load_profile("without-deadlines")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what chooses the random histories of ``tests/model``."""
    group = parser.getgroup("model")
    group.addoption(
        "--histories", type=int, default=None, help="how many random histories each test of the model takes"
    )
    group.addoption("--first-seed", type=int, default=None, help="the seed of the first of them")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The job's own session, on two cores, one for each test process."""
    from streaming.settings.model import load
    from streaming.spark.session import start_session

    session = start_session(load(None, {"spark.master": "local[2]", "spark.driver_memory": "1g"}), name="tests")
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManyRuns]:
    """One process, for each test process, for all commands that need none of their own: Spark starts in it once."""
    from tests.job.commands import ManyRuns

    process = ManyRuns(tmp_path_factory.mktemp("runs") / "said.txt")
    yield process
    process.close()
