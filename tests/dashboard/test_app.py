"""The application over the tables of the story."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from dashboard.app import create_app
from streaming.settings.model import Dashboard, load
from streaming.tables.errors import NoTablesError


def test_routes_are_behind_the_frame(client: TestClient) -> None:
    answer = client.get("/nothing-here")
    assert answer.status_code == 404
    assert "content-security-policy" in answer.headers


def test_without_tables_there_is_no_application_unless_they_may_come_later(tmp_path: Path, settings: Dashboard) -> None:
    with pytest.raises(NoTablesError):
        create_app(tmp_path, settings)
    create_app(tmp_path, settings, must_exist=False)


def test_more_pages_than_the_limit_are_refused(story_tables: Path) -> None:
    settings = load(overrides={"dashboard.allowed_hosts": ["testserver"], "dashboard.max_streams": 1}).dashboard
    app = create_app(story_tables, settings)
    with TestClient(app) as client:
        app.state.streams = 1
        assert client.get("/live").status_code == 503
