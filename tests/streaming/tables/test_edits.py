"""An edit as the source of a MERGE."""

from __future__ import annotations

from streaming.tables.arrow_rows import to_arrow
from streaming.tables.edits import GONE, source_of
from streaming.tables.schema import GROUPS
from streaming.tables.writer import Edit


def test_a_row_that_is_added_again_is_not_removed() -> None:
    before = [{"cluster": "c", "group_id": name, "members": 1} for name in ("a", "b", "a", None)]
    after = [{"cluster": "c", "group_id": name, "members": 2} for name in ("b", "d", None)]
    source = source_of(Edit(to_arrow(GROUPS, before), to_arrow(GROUPS, after)), GROUPS.key)
    told = [(row["group_id"], row["members"], row[GONE]) for row in source.to_pylist()]
    assert told == [("b", 2, False), ("d", 2, False), (None, 2, False), ("a", 1, True)]
