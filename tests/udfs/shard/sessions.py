"""What rows say of sessions and late events, in short."""

from typing import Any

from tests.udfs.shard.shard_script import T0
from udfs.model.journal import Change, MemberClosed, MemberOpened


def bodies(rows: list[Any], kind: type) -> list[Any]:
    return [row.body for row in rows if isinstance(row, Change) and isinstance(row.body, kind)]


def opened(rows: list[Any]) -> list[tuple[str, int]]:
    return [(body.member_id, body.joined_at - T0) for body in bodies(rows, MemberOpened)]


def closed(rows: list[Any]) -> list[tuple[str, int, str]]:
    return [(body.member_id, body.left_at - T0, body.left_reason) for body in bodies(rows, MemberClosed)]


def late(rows: list[Any]) -> list[tuple[str | None, str]]:
    return [(row.group_id, row.reason) for row in rows if hasattr(row, "reason")]
