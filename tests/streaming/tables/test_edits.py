"""An edit as the source of a MERGE."""

from __future__ import annotations

from streaming.tables.arrow_rows import to_arrow
from streaming.tables.edits import REMOVED, source_of, updates_of
from streaming.tables.schema import GROUPS
from streaming.tables.writer import Edit


def test_a_row_that_is_added_again_is_not_removed() -> None:
    before = [{"cluster": "c", "group_id": name, "members": 1} for name in ("a", "b", "a", None)]
    after = [{"cluster": "c", "group_id": name, "members": 2} for name in ("b", "d", None)]
    source = source_of(Edit(to_arrow(GROUPS, before), to_arrow(GROUPS, after)), GROUPS.key)
    reported = [(row["group_id"], row["members"], row[REMOVED]) for row in source.to_pylist()]
    assert reported == [("b", 2, False), ("d", 2, False), (None, 2, False), ("a", 1, True)]


def edit(before: dict[str, int | None], after: dict[str, int | None]) -> Edit:
    def rows(members: dict[str, int | None]) -> list[dict[str, object]]:
        return [
            {"cluster": "c", "group_id": name, "members": number, "state": "stable"} for name, number in members.items()
        ]

    return Edit(to_arrow(GROUPS, rows(before)), to_arrow(GROUPS, rows(after)))


def test_rows_that_are_only_updated_have_their_key_and_what_changes() -> None:
    updates = updates_of(edit({"a": 1, "b": None, "c": 3}, {"c": None, "b": 2, "a": 1}), GROUPS.key)
    assert updates is not None
    assert updates.to_pylist() == [
        {"cluster": "c", "group_id": "c", "members": None},
        {"cluster": "c", "group_id": "b", "members": 2},
        {"cluster": "c", "group_id": "a", "members": 1},
    ]


def test_rows_that_come_or_go_are_no_mere_updates() -> None:
    assert updates_of(edit({"a": 1}, {"a": 2, "b": 1}), GROUPS.key) is None
    assert updates_of(edit({"a": 1, "b": 1}, {"a": 2}), GROUPS.key) is None
    assert updates_of(edit({"a": 1}, {"b": 2}), GROUPS.key) is None
    assert updates_of(edit({"a": 1}, {"a": 1}), GROUPS.key) is None  # nothing changes
