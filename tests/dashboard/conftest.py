"""The tables of the small story, and the application over them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from dashboard.app import create_app
from dashboard.reading.questions import Reading
from streaming.settings.model import Dashboard, load
from tests.dashboard.demo_tables import write_demo
from tests.dashboard.whole_tables import write_whole


@pytest.fixture(scope="session")
def demo_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of three minutes of the demo's fleet."""
    root = tmp_path_factory.mktemp("demo")
    write_demo(root)
    return root


@pytest.fixture(scope="session")
def settings() -> Dashboard:
    return load(overrides={"dashboard.allowed_hosts": ["testserver"], "dashboard.port": 0}).dashboard


@pytest.fixture(scope="session")
def reading(story_tables: Path, settings: Dashboard) -> Reading:
    return Reading.of(story_tables, settings)


@pytest.fixture(scope="session")
def whole_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the small story, with rows added so that no listing is empty."""
    root = tmp_path_factory.mktemp("whole")
    write_whole(root)
    return root


# Not for the session: it goes on looking at its tables.
@pytest.fixture(scope="package")
def client(story_tables: Path, settings: Dashboard) -> Iterator[TestClient]:
    """The application over the story, as a browser on this machine reaches it."""
    with TestClient(create_app(story_tables, settings), follow_redirects=False) as test_client:
        yield test_client
