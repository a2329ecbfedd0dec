"""The choice of the engine that writes the tables."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from streaming.setup.errors import SetupError
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.engine import (
    AUTO,
    DELTA_RS,
    DELTA_SPARK,
    DeltaRsEngine,
    change_writer,
    exclusive_commits,
    stored_writer,
    writer_of,
)
from streaming.tables.errors import TableError
from streaming.tables.location import WRITER_PROPERTY
from streaming.tables.schema import GROUPS, TOPICS

if TYPE_CHECKING:
    from tests.kit.s3 import S3Server


@pytest.mark.parametrize(
    ("setting", "root", "writer"),
    [
        (AUTO, Path("/lake"), DELTA_RS),
        (AUTO, "s3://lake/tables", DELTA_RS),
        (AUTO, "catalog:main.monitor", DELTA_SPARK),
        (DELTA_SPARK, Path("/lake"), DELTA_SPARK),
    ],
)
def test_paths_are_written_by_delta_rs_and_catalogues_by_spark(setting: str, root: Path | str, writer: str) -> None:
    assert writer_of(setting, root) == writer


def test_delta_rs_is_refused_for_a_catalogue() -> None:
    with pytest.raises(TableError, match=r"main\.monitor is a schema of .* which delta-rs cannot write\. Set tables"):
        writer_of(DELTA_RS, "catalog:main.monitor")


def test_a_table_changes_its_writer_on_command_and_back(tmp_path: Path) -> None:
    assert stored_writer(tmp_path) == DELTA_RS
    engine = DeltaRsEngine()
    engine.table(tmp_path, GROUPS)
    change_writer(tmp_path, DELTA_SPARK)
    assert stored_writer(tmp_path) == DELTA_SPARK
    assert DeltaTable(tmp_path / "groups").metadata().configuration[WRITER_PROPERTY] == DELTA_SPARK
    with pytest.raises(TableError, match=r"is written by delta-spark, not by delta-rs\..*optimize --writer delta-rs"):
        DeltaRsTable(tmp_path, GROUPS)
    change_writer(tmp_path, DELTA_RS)
    DeltaRsTable(tmp_path, GROUPS)
    assert engine.exists(tmp_path, GROUPS.name)
    assert not engine.exists(tmp_path, TOPICS.name)


@pytest.mark.parametrize(
    ("writers", "on_disk"),
    [((DELTA_RS,), False), ((DELTA_RS, None), False), ((DELTA_SPARK,), True), ((DELTA_RS, DELTA_SPARK), True)],
)
def test_others_may_commit_if_commits_are_conditional(
    writers: tuple[str | None, ...], on_disk: bool, tmp_path: Path
) -> None:
    root = tmp_path if on_disk else "s3://no-such-lake/tables"
    with exclusive_commits(root, *writers) as guard, exclusive_commits(root, *writers):
        guard()


@pytest.mark.broker
def test_on_s3_only_one_process_commits_by_spark(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    root = s3.folder(monkeypatch)
    with exclusive_commits(root, DELTA_SPARK) as guard:
        guard()
        for writers in ((DELTA_SPARK, None), (DELTA_RS, DELTA_SPARK)):
            with pytest.raises(SetupError, match="another process writes s3://"), ExitStack() as held:
                held.enter_context(exclusive_commits(root, *writers))
        with exclusive_commits(root, DELTA_RS):
            pass
    with exclusive_commits(root, DELTA_SPARK):
        pass
