"""The command `optimize`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.streaming.views.story import json_of, run, write_story


@pytest.fixture
def own_tables(tmp_path: Path) -> Path:
    write_story(tmp_path)
    return tmp_path


def test_it_reports_each_table_and_what_people_read_stays(own_tables: Path) -> None:
    before = json_of(own_tables, "show", "group", "orders")
    rows = {row["table"]: row for row in json_of(own_tables, "optimize")}
    assert {"rebalances", "changes", "assignments", "members", "groups"} <= set(rows)
    assert all(row["files_after"] <= row["files_before"] for row in rows.values())
    assert json_of(own_tables, "show", "group", "orders") == before
    header, *lines = run(own_tables, "optimize").stdout.splitlines()
    assert header.split()[:3] == ["TABLE", "FILES-BEFORE", "FILES-AFTER"]
    assert [line.split()[0] for line in lines] == list(rows)


def test_what_is_kept_comes_from_the_settings_file(own_tables: Path) -> None:
    def journal_rows_dropped(hours: int) -> int:
        config = own_tables / "monitor.toml"
        config.write_text(f"[tables]\njournal_retention_hours = {hours}\n")
        lines = run(own_tables, "optimize", "--config", str(config), "--json").stdout.splitlines()
        return sum(json.loads(line)["journal_rows_dropped"] for line in lines)

    journal = DeltaTable(own_tables / "changes")
    assert journal_rows_dropped(800_000) == 0
    assert journal_rows_dropped(1) == journal.count() > 0


def test_a_writer_that_there_is_not_is_refused(own_tables: Path) -> None:
    ended = run(own_tables, "optimize", "--writer", "spark")
    assert ended.exit_code == 2
    assert "there are delta-rs and delta-spark" in " ".join(ended.output.replace("│", " ").split())


def test_the_writer_that_tables_have_may_be_named(own_tables: Path) -> None:
    assert json_of(own_tables, "optimize", "--writer", "delta-rs")
