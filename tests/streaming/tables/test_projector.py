"""What a piece does to the current rows that it may touch."""

from __future__ import annotations

from streaming.tables.arrow_rows import from_arrow, to_arrow
from streaming.tables.journal_entries import Entry
from streaming.tables.projections import GROUPS_EFFECT
from streaming.tables.projector import edit_of, present_of
from streaming.tables.schema import GROUPS
from tests.streaming.tables.journals import T0, stable


def test_an_edit_is_the_rows_that_change_as_they_were_and_as_they_become() -> None:
    current = to_arrow(GROUPS, [{"cluster": "c1", "group_id": name, "members": 1} for name in ("a", "b")])
    edit = edit_of(GROUPS_EFFECT, [Entry("c1", "b", T0, stable(3))], current, {})
    assert [(row["group_id"], row["members"]) for row in from_arrow(GROUPS, edit.removed)] == [("b", 1)]
    assert [(row["group_id"], row["members"]) for row in from_arrow(GROUPS, edit.added)] == [("b", 3)]


def test_groups_are_found_by_cluster_and_name() -> None:
    found = present_of(to_arrow(GROUPS, [{"cluster": "c1", "group_id": "a", "members": 7}]))
    assert {group: row["members"] for group, row in found.items()} == {("c1", "a"): 7}
