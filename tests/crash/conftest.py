"""Fixtures of the tests that end the job by force."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.job.commands import ManyRuns


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManyRuns]:
    """One process for all runs that nothing happens to."""
    process = ManyRuns(tmp_path_factory.mktemp("runs") / "said.txt")
    yield process
    process.close()
