"""Pages evaluate widespread findings to the minute, and keep the result for that minute."""

from __future__ import annotations

from pathlib import Path

from dashboard.reading.listing_query import plain_rows
from dashboard.reading.overview import clusters, overview
from dashboard.reading.questions import Reading
from dashboard.reading.widespread_findings import widespread
from streaming.settings.model import Dashboard, load
from streaming.views.widespread import WidespreadKind
from tests.streaming.views.many_groups import Troubled, names, write_groups


def test_it_counts_for_the_health_of_no_group_and_all_else_does(tmp_path: Path, settings: Dashboard) -> None:
    write_groups(tmp_path, 8, Troubled(names(1, 4)), Troubled(["g4"], "queue_unassigned", severity="critical"))
    reading = Reading.of(tmp_path, settings)
    assert widespread(reading) == (WidespreadKind("c1", "flapping", 4, 8),)
    health = {row["group_id"]: row["health"] for row in plain_rows(overview(reading))}
    assert health == dict.fromkeys(names(5, 8), "ok") | dict.fromkeys(names(1, 3), "info") | {"g4": "critical"}
    (cluster,) = plain_rows(clusters(reading))
    assert (cluster["in_trouble"], cluster["open_findings"], cluster["widespread_kinds"]) == (1, 5, "flapping")


def test_in_few_groups_it_counts(tmp_path: Path, settings: Dashboard) -> None:
    write_groups(tmp_path, 8, Troubled(names(1, 4)))
    reading = Reading.of(tmp_path, settings, widespread=load(overrides={"widespread.min_groups": 5}).widespread)
    assert widespread(reading) == ()
    assert [row["health"] for row in plain_rows(overview(reading))].count("warning") == 4
    assert plain_rows(clusters(reading))[0]["widespread_kinds"] is None


def test_a_recording_ends_with_its_last_change(tmp_path: Path, settings: Dashboard) -> None:
    minutes = 60_000
    write_groups(tmp_path, 8, Troubled(names(1, 6), until=5 * minutes), Troubled(["g8"], since=9 * minutes))
    assert widespread(Reading.of(tmp_path, settings)) == ()
