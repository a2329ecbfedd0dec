"""Fixtures for every test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
import structlog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.job.commands import ManyRuns
    from tests.simulation.core_run import CoreRun
    from tests.simulation.given_tables import GivenTables

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


@pytest.fixture(scope="session", autouse=True)
def _loggers_are_not_kept() -> Iterator[None]:
    """A command that runs in this process configures its log lines; those of later tests must go by the defaults."""
    configure = structlog.configure

    def without_cache(*args: Any, **settings: Any) -> None:
        configure(*args, **{**settings, "cache_logger_on_first_use": False})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structlog, "configure", without_cache)
        yield


@pytest.fixture(scope="session")
def story_tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The tables of the small story, written once for each test process; no test may change them."""
    from tests.streaming.views.story import write_story

    root = tmp_path_factory.mktemp("story")
    write_story(root)
    written = sorted(root.rglob("*"))
    yield root
    assert sorted(root.rglob("*")) == written, "a test changed the tables that all tests of its process read"


@pytest.fixture(scope="session")
def day() -> CoreRun:
    """The run of the recorded day, played once."""
    from tests.simulation.core_run import CoreRun
    from tests.simulation.recorded_day import RULES, batches, play

    return play(CoreRun(RULES), batches())


@pytest.fixture(scope="session")
def day_tables(day: CoreRun) -> GivenTables:
    """The tables of the recorded day."""
    from tests.simulation.given_tables import GivenTables

    return GivenTables.of(day)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The job's own session, on two cores, one for each test process; it has a client of S3."""
    from streaming.settings.model import load
    from streaming.spark.session import start_session
    from tests.kit.processes import QUICK_START

    # With the jars of a store, which stand behind Spark's own.
    wanted = {"spark.master": "local[2]", "spark.driver_memory": "1g", "events.folder": "s3://lake/events"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", " ".join(QUICK_START))
        session = start_session(load(None, wanted), name="tests")
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
