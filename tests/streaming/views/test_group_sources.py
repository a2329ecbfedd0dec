"""Where groups come from, by the newest note of the journal that names it."""

from __future__ import annotations

from pathlib import Path

from streaming.tables.arrow_rows import to_arrow
from streaming.tables.commit_notes import BatchTimes, note_of
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.schema import CHANGES
from streaming.tables.writer import Mark
from streaming.views.group_sources import group_sources
from streaming.views.reader import Reader
from tests.streaming.tables.journals import T0
from tests.streaming.views.rebalancing_story import write_rebalancing
from tests.streaming.views.story import json_of, run


def note(root: Path, number: int, text: str) -> None:
    change = {"cluster": "c1", "group_id": "g", "kind": "group_changed", "event_time": T0, "number": 1, "batch": 1}
    DeltaRsTable(root, CHANGES).append(to_arrow(CHANGES, [change]), Mark("noted", number, text))


def test_the_newest_note_with_sources_counts(tmp_path: Path) -> None:
    note(tmp_path, 0, note_of(BatchTimes(1, 1, {}, {"c1": "records: all rights for it are there"})))
    assert group_sources(Reader(tmp_path)) == {"c1": "records: all rights for it are there"}
    note(tmp_path, 1, note_of(BatchTimes(1, 1, {}, {"c1": "admin: the settings say so"})))
    note(tmp_path, 2, note_of(BatchTimes(1, 1, {})))
    note(tmp_path, 3, "")
    assert group_sources(Reader(tmp_path)) == {"c1": "admin: the settings say so"}


def test_a_group_shows_the_source_that_was_taken_and_how_members_departed(tmp_path: Path) -> None:
    write_rebalancing(tmp_path)
    assert "Source of" not in run(tmp_path, "show", "group", "polled").stdout
    why = "admin: missing: Read on topic __consumer_offsets"
    note(tmp_path, 0, note_of(BatchTimes(1, 1, {}, {"c1": why})))
    lines = run(tmp_path, "show", "group", "polled").stdout.splitlines()
    assert f"Source of the cluster's groups: {why}." in lines
    assert "Known by admin calls alone: what happens between two polls is one generation." in lines
    (row,) = json_of(tmp_path, "show", "group", "polled")
    assert row["source"] == why
    assert [(departure["member_id"], departure["left_reason"]) for departure in row["last_departures"]] == [
        ("gone", "expired")
    ]
