"""After it the first page finds its results."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.app import warm_up
from dashboard.pages.templating import environment
from dashboard.reading.overview import clusters, overview
from dashboard.reading.queries import Queries, QueryTimeoutError
from dashboard.reading.questions import Reading
from streaming.settings.model import Dashboard


def test_shared_page_data_is_computed_and_templates_are_compiled(
    story_tables: Path, settings: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, templates = Reading.of(story_tables, settings), environment()
    warm_up(reading, templates)
    assert templates.cache is not None
    assert len(templates.cache) == len(templates.list_templates())
    monkeypatch.setattr(Queries, "run", lambda *_: pytest.fail("it was computed before"))
    assert clusters(reading).num_rows == 2
    assert overview(reading).num_rows > 2


def test_a_query_that_takes_too_long_does_not_end_the_server(
    story_tables: Path, settings: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise QueryTimeoutError("the query took longer than 1 s")

    monkeypatch.setattr(Queries, "run", fail)
    warm_up(Reading.of(story_tables, settings), environment())
