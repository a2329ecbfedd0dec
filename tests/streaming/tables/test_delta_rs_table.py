"""Behaviour of delta-rs beyond the contract of writers: properties, files, and errors in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from streaming.tables import delta_rs_table
from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.errors import TableError
from streaming.tables.location import WRITER_PROPERTY
from streaming.tables.schema import CHANGES, GROUPS
from streaming.tables.writer import Mark


def append(table: DeltaRsTable, *names: str) -> Path:
    """Append a row for each group; return the new file."""
    rows = [{"cluster": "c1", "group_id": name} for name in names]
    table.append(to_arrow(table.table, rows), Mark("job", table.version))
    delta = DeltaTable(table.uri)
    return Path(table.uri) / sorted(delta.get_add_actions().column("path").to_pylist())[-1]


def test_a_new_table_stores_its_writer_and_the_size_of_its_files(tmp_path: Path) -> None:
    DeltaRsTable(tmp_path, GROUPS)
    stored = DeltaTable(tmp_path / "groups").metadata()
    assert stored.configuration[WRITER_PROPERTY] == delta_rs_table.NAME
    assert stored.configuration["delta.targetFileSize"] == str(GROUPS.file_bytes)
    assert stored.description == GROUPS.comment


def test_a_table_that_names_no_writer_is_accepted(tmp_path: Path) -> None:
    DeltaRsTable(tmp_path, GROUPS)
    for file in (tmp_path / "groups/_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in file.read_text().splitlines()]
        for action in actions:
            action.get("metaData", {}).get("configuration", {}).pop(WRITER_PROPERTY, None)
        file.write_text("".join(f"{json.dumps(action)}\n" for action in actions))
    table = DeltaRsTable(tmp_path, GROUPS)
    assert WRITER_PROPERTY not in DeltaTable(table.uri).metadata().configuration
    append(table, "a")
    assert DeltaTable(table.uri).count() == 1


def test_files_are_compressed_and_unique_texts_have_no_dictionary(tmp_path: Path) -> None:
    table = DeltaRsTable(tmp_path, CHANGES)
    group = pq.read_metadata(append(table, "a", "b", "b")).row_group(0)
    columns = {group.column(place).path_in_schema: group.column(place) for place in range(group.num_columns)}
    assert {column.compression for column in columns.values()} == {"ZSTD"}
    assert CHANGES.unique_texts
    for name in CHANGES.unique_texts:
        assert not columns[name].has_dictionary_page
    assert columns["group_id"].has_dictionary_page


def test_a_folder_that_is_not_a_table_is_refused_in_one_line_that_names_it(tmp_path: Path) -> None:
    log = tmp_path / "groups/_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text("no JSON\n")
    with pytest.raises(TableError, match=r"groups cannot be used: .*Choose a folder with --tables\.$") as refused:
        DeltaRsTable(tmp_path, GROUPS)
    assert "\n" not in str(refused.value)
