"""Tables that several tests read, each written once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.streaming.views.story import write_static_story


@pytest.fixture(scope="session")
def tables(story_tables: Path) -> Path:
    return story_tables


@pytest.fixture(scope="session")
def static_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("static-story")
    write_static_story(root)
    return root
