"""Where a table is."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.errors import NoTablesError
from streaming.tables.location import is_table, table_uri
from streaming.tables.schema import GROUPS


@pytest.mark.parametrize(
    ("root", "uri"),
    [
        (Path("/lake/tables"), "/lake/tables/groups"),
        ("s3://bucket/tables", "s3://bucket/tables/groups"),
        ("s3://bucket/tables/", "s3://bucket/tables/groups"),
    ],
)
def test_a_table_is_below_its_root(root: Path | str, uri: str) -> None:
    assert table_uri(root, "groups") == uri


def test_a_folder_alone_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "groups").mkdir()
    assert not is_table(tmp_path, "groups")
    assert not is_table(tmp_path / "nowhere", "groups")
    DeltaRsTable(tmp_path, GROUPS)
    assert is_table(tmp_path, "groups")


def test_a_schema_of_a_catalogue_is_no_folder() -> None:
    with pytest.raises(NoTablesError, match=r"main\.monitor is a schema of .*DESCRIBE DETAIL main\.mon"):
        table_uri("catalog:main.monitor", "groups")
