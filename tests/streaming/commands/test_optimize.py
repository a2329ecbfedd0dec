"""The command `optimize`."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from streaming.settings.model import Settings
from streaming.setup.errors import SetupError
from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.engine import DELTA_SPARK, DeltaRsEngine, change_writer, exclusive_commits
from streaming.tables.materializer import Materializer
from streaming.tables.retention import RETENTIONS, OldRows
from streaming.tables.schema import ASSIGNMENTS, CHANGES, GROUPS, TABLES
from streaming.tables.writer import Mark
from tests.streaming.tables.journals import T0, Journal, rows
from tests.streaming.views.story import FIRST, FOURTH, json_of, run, seconds, write_story
from udfs.model import journal

if TYPE_CHECKING:
    from tests.kit.s3 import S3Server


@pytest.fixture
def own_tables(tmp_path: Path) -> Path:
    write_story(tmp_path)
    return tmp_path


def test_it_reports_each_table_and_what_people_read_stays(own_tables: Path) -> None:
    before = json_of(own_tables, "show", "group", "orders")
    done = {row["table"]: row for row in json_of(own_tables, "optimize")}
    assert {"rebalances", "changes", "assignments", "members", "groups"} <= set(done)
    assert all(row["files_after"] <= row["files_before"] for row in done.values())
    assert not any(row["dropped"] for row in done.values())
    assert json_of(own_tables, "show", "group", "orders") == before
    header, *lines = run(own_tables, "optimize").stdout.splitlines()
    assert header.split()[:3] == ["TABLE", "FILES", "AFTER"]
    assert [line.split()[0] for line in lines] == list(done)


def keeping(tables: Path, **hours: int) -> tuple[str, str]:
    """Return the option that names a file with these hours."""
    config = tables / "monitor.toml"
    config.write_text("[retention]\n" + "".join(f"{name}_hours = {value}\n" for name, value in hours.items()))
    return "--config", str(config)


def aged(tables: Path) -> None:
    """Advance the cluster's time by ten hours: a topic grows."""
    topic = journal.TopicChanged(topic="late", queue_count=1, queues=[], valid_from=T0 + 10 * 3_600_000)
    change = Journal().change(10 * 3_600_000, topic, group=None, subject="late")
    DeltaRsTable(tables, CHANGES).append(to_arrow(CHANGES, rows([change])), Mark("job", 1))
    Materializer(tables, 0).run()


def contents(tables: Path) -> dict[str, tuple[int, list[str]]]:
    """Return version and files of each table."""
    found = {name: DeltaTable(str(tables / name)) for name in TABLES if (tables / name).is_dir()}
    return {name: (table.version(), sorted(table.file_uris())) for name, table in found.items()}


def test_a_dry_run_shows_which_rows_are_too_old_and_why_and_changes_nothing(own_tables: Path) -> None:
    aged(own_tables)
    config = keeping(own_tables, assignments=1, changes=2)
    before = contents(own_tables)
    planned = {row["table"]: row for row in json_of(own_tables, "optimize", "--dry-run", *config)}
    text = run(own_tables, "optimize", "--dry-run", *config).stdout
    assert contents(own_tables) == before
    done = {row["table"]: row for row in json_of(own_tables, "optimize", *config)}
    assert [row["dropped"] for row in planned.values()] == [row["dropped"] for row in done.values()]
    assert [row["files_compacted"] for row in planned.values()] == [row["files_compacted"] for row in done.values()]
    (spans,) = planned["assignments"]["dropped"]
    assert spans == {
        "cluster": "c1",
        "rows": planned["assignments"]["rows_dropped"],
        "before": "2026-01-01T09:00:00.000Z",
        "newest": "2026-01-01T10:00:00.000Z",
    }
    assert spans["rows"] > 0
    assert planned["members"] | {"dropped": [], "keep_hours": None} == planned["members"]
    reason = (
        f"assignments, cluster c1: {spans['rows']} rows to drop\n"
        "  before 2026-01-01T09:00:00.000Z: retention.assignments_hours = 1\n"
        "  newest event 2026-01-01T10:00:00.000Z\n"
    )
    assert reason in text
    assert text.endswith("\nNothing was changed.\n")
    assert max(map(len, text.splitlines())) <= 80


def test_upkeep_shows_what_it_did_as_the_dry_run_does(own_tables: Path) -> None:
    aged(own_tables)
    text = run(own_tables, "optimize", *keeping(own_tables, assignments=1, changes=2)).stdout
    assert "rows dropped\n  before 2026-01-01T09:00:00.000Z: retention.assignments_hours = 1\n  newest event" in text
    assert "to drop" not in text.lower()
    assert max(map(len, text.splitlines())) <= 80


def test_old_rows_of_the_journal_that_stay_are_explained(own_tables: Path) -> None:
    aged(own_tables)
    shutil.rmtree(own_tables / "audits")
    text = run(own_tables, "optimize", "--dry-run", *keeping(own_tables, changes=1)).stdout
    assert "changes: old rows stay until every table that follows has applied them: run the job\n" in text


def test_a_dry_run_of_a_change_of_writer_is_refused(own_tables: Path) -> None:
    before = contents(own_tables)
    assert run(own_tables, "optimize", "--dry-run", "--writer", "delta-spark").exit_code == 2
    assert contents(own_tables) == before


def test_a_dry_run_leaves_a_table_of_an_older_release_as_it_is(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "groups", pa.table({"cluster": ["c1"], "group_id": ["g"]}))
    before = contents(tmp_path)
    assert json_of(tmp_path, "optimize", "--dry-run")
    assert contents(tmp_path) == before


def test_owners_within_the_retention_are_found_and_before_it_unknown(own_tables: Path) -> None:
    """At 5 s member a owned queue 1 up to 10 s; the span is dropped, that of queue 0 up to 70 s stays."""
    inside = json_of(own_tables, "who-owned", "orders", "0", "--at", seconds(60))
    explained = run(own_tables, "explain", FOURTH).stdout
    aged(own_tables)
    DeltaRsTable(own_tables, ASSIGNMENTS).maintain(
        vacuum_after_ms=86_400_000, old=OldRows(RETENTIONS["assignments"], {"c1": T0 + 20_000})
    )
    assert json_of(own_tables, "who-owned", "orders", "0", "--at", seconds(60)) == inside
    assert run(own_tables, "explain", FOURTH).stdout == explained
    ended = run(own_tables, "who-owned", "orders", "1", "--at", seconds(5))
    assert ended.exit_code == 1
    assert ended.stderr == (
        "error: the owner of orders-1 at 2026-01-01T00:00:05.000Z is not known: spans of cluster c1 that ended before"
        " 2026-01-01T00:00:20.000Z were dropped (retention.assignments_hours)\n"
    )
    assert "spans that ended before 2026-01-01T00:00:20.000Z were dropped" in run(own_tables, "explain", FIRST).stdout


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
