"""Shell: current and past problems."""

from __future__ import annotations

from streaming.tables.schema import Row
from streaming.views.reader import Reader

SEVERITIES = ("critical", "warning", "info")


def findings(
    reader: Reader,
    *,
    group: str | None = None,
    cluster: str | None = None,
    closed: bool = False,
    kind: str | None = None,
) -> list[Row]:
    """Return the open findings (or all), the gravest first, then the newest."""
    keep = None if closed else lambda rows: rows["closed_at"].is_null()
    found = reader.rows("findings", where={"cluster": cluster, "group_id": group, "kind": kind}, keep=keep)
    return sorted(found, key=_gravity)


def _gravity(row: Row) -> tuple[object, ...]:
    return row["closed_at"] is not None, SEVERITIES.index(row["severity"]), -row["opened_at"], row["finding_id"]
