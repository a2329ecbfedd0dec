"""One group with all that belongs to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.reading.dependencies import noted_reads
from dashboard.reading.group_detail import group_detail
from dashboard.reading.questions import Reading
from streaming.settings.model import Dashboard
from streaming.tables.errors import AmbiguousError, NotFoundError
from streaming.tables.schema import GROUPS, QUEUE_PROGRESS
from tests.streaming.views.story import SECOND, THIRD
from tests.streaming.views.test_progress import moved, write


def test_a_group_has_its_members_offsets_and_the_newest_rebalances(reading: Reading) -> None:
    found = group_detail(reading, "orders", "c1", last=2, most=10)
    assert (found.group["health"], [row["member_id"] for row in found.members]) == ("warning", ["b"])
    assert ([row["rebalance_id"] for row in found.rebalances.rows], found.rebalances.total) == ([THIRD, SECOND], 3)
    assert [row["kind"] for row in found.findings.rows] == ["expected_differs"]


def test_a_name_that_several_clusters_have_needs_one(reading: Reading) -> None:
    with pytest.raises(AmbiguousError, match="c1, c2"):
        group_detail(reading, "twin", last=1, most=1)
    assert group_detail(reading, "twin", "c2", last=1, most=1).group["cluster"] == "c2"


def test_no_offsets_are_read_for_an_unknown_group(tmp_path: Path, settings: Dashboard) -> None:
    write(tmp_path, QUEUE_PROGRESS, [moved(0, 10, 5, 9)])
    write(tmp_path, GROUPS, [{"system": "kafka", "state": "empty", "members": 0, "queues": 0}])
    reading = Reading.of(tmp_path, settings)
    for cluster in (None, "c"):
        with noted_reads() as tables, pytest.raises(NotFoundError):
            group_detail(reading, "other", cluster, last=1, most=1)
        assert "queue_progress" not in tables
    with noted_reads() as tables:
        group_detail(reading, "g", last=1, most=1)
    assert "queue_progress" in tables
