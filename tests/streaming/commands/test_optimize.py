"""The command `optimize`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from streaming.settings.model import Settings
from streaming.setup.errors import SetupError
from streaming.tables.engine import DELTA_SPARK, DeltaRsEngine, change_writer, exclusive_commits
from streaming.tables.schema import GROUPS
from tests.streaming.views.story import json_of, run, write_story

if TYPE_CHECKING:
    from tests.kit.s3 import S3Server


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


def test_spark_starts_with_what_it_needs_where_the_tables_are(
    own_tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Settings] = []

    def start(settings: Settings, *, shared: Sequence[Path]) -> None:
        assert list(shared) == [own_tables]  # executors must see them
        started.append(settings)
        raise SetupError("no Spark here", "none")

    monkeypatch.setattr("streaming.spark.session.start_session", start)
    change_writer(own_tables, DELTA_SPARK)
    assert isinstance(run(own_tables, "optimize").exception, SetupError)
    assert [settings.tables.writer for settings in started] == [DELTA_SPARK]


@pytest.mark.broker
@pytest.mark.parametrize("change", [(), ("--writer", "delta-rs")])
def test_tables_on_s3_that_spark_writes_are_left_alone_beside_the_job(
    change: tuple[str, ...], s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = s3.folder(monkeypatch)
    before = DeltaRsEngine().table(root, GROUPS).version
    change_writer(root, DELTA_SPARK)
    with exclusive_commits(root, DELTA_SPARK):
        ended = run(root, "optimize", *change)
    assert "another process writes s3://" in str(ended.exception)
    assert DeltaTable(f"{root}/groups").version() == before + 1
