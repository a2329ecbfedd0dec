"""A rebalance leads to those around it, and to what was wrong then."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from dashboard.app import create_app
from dashboard.reading.questions import Reading
from dashboard.reading.rebalance_neighbours import MOST_OTHERS, NEAR_MS, neighbours
from streaming.settings.model import Dashboard
from streaming.views.rebalances import one_rebalance
from tests.browser.day_tables import T0, rebalance, write_rows
from tests.streaming.views.story import FIRST, SECOND, THIRD


@pytest.mark.parametrize(
    ("name", "previous", "following"), [(FIRST, None, SECOND), (SECOND, FIRST, THIRD), (THIRD, SECOND, None)]
)
def test_a_rebalance_is_between_those_of_its_group(
    reading: Reading, name: str, previous: str | None, following: str | None
) -> None:
    found = neighbours(reading, one_rebalance(reading.tables, name))
    ids = [row and row["rebalance_id"] for row in (found.previous, found.following)]
    assert ids == [previous, following]


@pytest.fixture
def crowd(tmp_path: Path) -> Path:
    times = {"same": T0, "edge": T0 + NEAR_MS, "before": T0 - NEAR_MS, "beyond": T0 + NEAR_MS + 1, "own": T0}
    rows = [rebalance("c", name, f"r-{name}", at, "m") for name, at in times.items()]
    rows += [rebalance("c", f"g{number:03}", f"r-{number}", T0 + 2, "m") for number in range(MOST_OTHERS)]
    write_rows(tmp_path, "rebalances", rows)
    open_then = {"finding_id": "f", "cluster": "c", "group_id": "own", "kind": "flapping", "severity": "warning"}
    open_then |= {"message": "it flaps", "advice": "stop it", "evidence": [], "opened_at": T0 - 1}
    write_rows(tmp_path, "findings", [open_then])
    return tmp_path


def test_other_groups_within_a_minute_are_listed_the_nearest_first(crowd: Path, settings: Dashboard) -> None:
    reading = Reading.of(crowd, settings)
    found = neighbours(reading, one_rebalance(reading.tables, "r-own"))
    assert [row["group_id"] for row in found.others[:2]] == ["same", "g000"]
    assert (len(found.others), found.other_count) == (MOST_OTHERS, MOST_OTHERS + 3)


def test_the_page_leads_to_them_and_to_what_to_do(crowd: Path, settings: Dashboard) -> None:
    with TestClient(create_app(crowd, settings)) as client:
        text = client.get("/rebalance?id=r-own&range=1h").text
    minute = f"from={T0 - NEAR_MS}&amp;to={T0 + NEAR_MS}#timeline"
    shown = ["Because m joined, 1 queue moved", "instead of 0", "it flaps", "stop it", minute]
    shown += ["/rebalance?id=r-same&amp;range=1h"]
    assert [part for part in shown if part not in text] == []
