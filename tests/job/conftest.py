"""Fixtures of the tests that run the whole job."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.job.commands import CONFIG, Ended, ManyRuns, once
from tests.job.recordings import Line, annotation_lines, cut, disordered, fleet_lines, write_files


@pytest.fixture(scope="session")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Settings for small runs."""
    path = tmp_path_factory.mktemp("config") / "monitor.toml"
    path.write_text(CONFIG)
    return path


@pytest.fixture(scope="session")
def run_once(runs: ManyRuns, config: Path) -> Callable[..., Ended]:
    """Run the job over a folder: ``run_once(events, place, "--flush")``; the place gets tables and checkpoint."""

    def run(events: Path, place: Path, *more: str | Path) -> Ended:
        return runs.run(once(events, place, config, more))

    return run


@pytest.fixture(scope="session")
def lines() -> list[Line]:
    """Record a minute and a half in the life of a fleet, and what was done to it."""
    recorded = fleet_lines(seed=5, duration_ms=90_000)
    return sorted([*recorded, *annotation_lines(recorded)])


@pytest.fixture(scope="session")
def whole(lines: list[Line], run_once: Callable[..., Ended], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of a run that read everything at once."""
    place = tmp_path_factory.mktemp("whole")
    write_files(place / "events", cut(disordered(lines, seed=0), 2))
    ended = run_once(place / "events", place, "--flush")
    assert ended.exit_code == 0, ended.stderr[-3000:]
    return place / "tables"
