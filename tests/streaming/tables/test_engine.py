"""Which engine writes the tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from streaming.tables.delta_rs import DeltaRsTable
from streaming.tables.engine import (
    AUTO,
    DELTA_RS,
    DELTA_SPARK,
    DeltaRsEngine,
    change_writer,
    stored_writer,
    writer_of,
)
from streaming.tables.errors import TableError
from streaming.tables.location import WRITER_PROPERTY
from streaming.tables.schema import GROUPS, TOPICS


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
