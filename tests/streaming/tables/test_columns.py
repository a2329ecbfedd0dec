"""Types of columns, and the values that each of them takes."""

from __future__ import annotations

import pyarrow as pa

from streaming.tables.columns import COUNT, TEXT, Column, Table


def test_a_table_has_the_schema_of_its_columns_in_their_order() -> None:
    table = Table("t", "A table", (Column("b", TEXT, "first"), Column("a", COUNT, "second")), key=("b",))
    assert table.names == ("b", "a")
    assert table.schema == pa.schema([("b", pa.string()), ("a", pa.int32())])
