"""Fixtures for every test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The job's own session, on two cores, one for each test process."""
    from streaming.session import start_session
    from streaming.settings import load

    session = start_session(load(None, {"spark.master": "local[2]", "spark.driver_memory": "1g"}), name="tests")
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
