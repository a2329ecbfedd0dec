"""How the job fared that wrote the story."""

from __future__ import annotations

from pathlib import Path

from dashboard.reading.job_facts import batches, job_facts
from dashboard.reading.questions import Reading
from streaming.settings.model import Dashboard
from streaming.tables.arrow_rows import to_arrow
from streaming.tables.commit_notes import BatchTimes, note_of
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.schema import CHANGES, TABLES
from streaming.tables.writer import Mark
from tests.streaming.tables.journals import T0


def test_delays_and_clocks_are_those_of_the_tables(reading: Reading) -> None:
    facts = job_facts(reading)
    (delay,) = facts["delays"]
    assert (delay["rebalances"], delay["median_ms"], delay["longest_ms"]) == (3, 3_000, 3_000)
    newest = {row["cluster"]: row["newest_event"] for row in facts["clocks"]}
    assert newest == {"c1": T0 + 70_000, "c2": T0}


def test_tables_and_their_commits_are_listed(reading: Reading) -> None:
    facts = job_facts(reading)
    sizes = {row["table"]: row for row in facts["tables"]}
    assert list(sizes) == list(TABLES)
    assert sizes["rebalances"]["files"] == 1
    assert sizes["rebalances"]["bytes"] > 0
    assert sizes["rejected_events"]["version"] is None  # nothing was rejected
    assert {row["table"] for row in facts["commits"]} >= {"rebalances", "changes", "groups"}


def test_findings_of_groups_are_not_the_sources(reading: Reading) -> None:
    assert job_facts(reading)["findings"] == []


def test_batches_are_shown_from_the_notes_of_commits(tmp_path: Path, settings: Dashboard) -> None:
    journal = DeltaRsTable(tmp_path, CHANGES)
    change = {"cluster": "c1", "group_id": "g", "kind": "group_changed", "event_time": T0, "number": 1, "batch": 1}
    for number, note in enumerate([note_of(BatchTimes(4, 100, {"triggerExecution": 2_000, "addBatch": 1_200})), ""]):
        journal.append(to_arrow(CHANGES, [change]), Mark("job", number, note))
    (shown,) = batches(Reading.of(tmp_path, settings))
    assert (shown["batches"], shown["events"], shown["triggerExecution"], shown["addBatch"]) == (4, 100, 500, 300)
    assert shown["walCommit"] == 0
