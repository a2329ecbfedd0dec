"""Columns of a group's protocol and verdict: the table has each, and limits are those of the core."""

from __future__ import annotations

from streaming.tables.group_columns import PROTOCOL_AND_VERDICT
from streaming.tables.schema import GROUPS
from udfs.model.journal import MAX_MEMBER_EPOCHS, MAX_RECONCILING_MEMBERS, MAX_RECONCILING_QUEUES


def test_the_table_of_groups_ends_with_them() -> None:
    assert GROUPS.columns[-len(PROTOCOL_AND_VERDICT) :] == PROTOCOL_AND_VERDICT


def test_comments_name_the_limits_of_the_core() -> None:
    comments = {column.name: column.comment for column in PROTOCOL_AND_VERDICT}
    assert str(MAX_MEMBER_EPOCHS) in comments["member_epochs"]
    for limit in (MAX_RECONCILING_MEMBERS, MAX_RECONCILING_QUEUES):
        assert str(limit) in comments["reconciling"]
