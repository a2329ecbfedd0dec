"""Dashboard: the queues of members, computed and reported, and whether both agree."""

from __future__ import annotations

import pyarrow as pa

from dashboard.reading.questions import Reading
from streaming.tables.columns import TRUTH, Column
from streaming.tables.schema import LONG, TEXT, Row
from streaming.views.pods import with_pods
from streaming.views.reader import holds_at

_QUEUES = pa.list_(pa.struct([("topic", TEXT), ("broker", TEXT), ("queue_id", LONG)]))
HELD = (
    Column("computed", _QUEUES, "The queues that it holds as computed; null = its session was over"),
    Column("reported", _QUEUES, "The queues that it holds as reported; null as before, or nobody in its group reports"),
    Column("agrees", TRUTH, "Whether both are equal; null = there is nothing to compare"),
)
# The spans of up to this many groups are looked up by name; for more groups, all spans of their clusters are read.
_GROUPS_NAMED = 500
_COLUMNS = ("cluster", "group_id", "member_id", "origin", "topic", "broker", "queue_id")
_HELD = """
select cluster, group_id, member_id, origin, list({'topic': topic, 'broker': broker, 'queue_id': queue_id}
    order by topic, coalesce(broker, ''), queue_id) as queues
from spans where member_id in (select unnest(?::varchar[])) group by all
"""
_ORIGINS = "select distinct cluster, group_id, origin from spans"


def with_queues_and_pods(reading: Reading, sessions: list[Row], at_ms: int | None) -> list[Row]:
    """Return sessions with the queues that the members hold, see ``with_queues``, and the pods in which they ran."""
    return with_pods(reading.tables, with_queues(reading, sessions, at_ms))


def with_queues(reading: Reading, sessions: list[Row], at_ms: int | None) -> list[Row]:
    """Return sessions with the queues that the members hold at a time; None for now.

    Args:
        sessions: Rows of ``members``; for a time, those that were open then.
    """

    def is_present(row: Row) -> bool:
        return at_ms is not None or row["left_at"] is None

    over: Row = {"computed": None, "reported": None, "agrees": None}
    present = [row for row in sessions if is_present(row)]
    if not present:
        return [row | over for row in sessions]
    where: dict[str, object] = {"cluster": {row["cluster"] for row in present}}
    groups = {row["group_id"] for row in present}
    if len(groups) <= _GROUPS_NAMED:
        where["group_id"] = groups
    spans = reading.tables.read(
        "assignments",
        columns=[*_COLUMNS, "valid_from", "valid_to"],
        where=where,
        keep=holds_at("valid_from", "valid_to", at_ms),
    ).select(_COLUMNS)
    rows = reading.sql(_HELD, {"spans": spans}, [sorted({row["member_id"] for row in present})]).to_pylist()
    held = {tuple(row[name] for name in _COLUMNS[:4]): row["queues"] for row in rows}
    origins = {tuple(row.values()) for row in reading.sql(_ORIGINS, {"spans": spans}).to_pylist()}
    return [row | (_held(row, held, origins) if is_present(row) else over) for row in sessions]


def _held(row: Row, held: dict[tuple[str, ...], list[Row]], origins: set[tuple[str, ...]]) -> Row:
    group = (row["cluster"], row["group_id"])
    has = {origin: (*group, origin) in origins for origin in ("computed", "reported")}
    computed, reported = (held.get((*group, row["member_id"], origin), []) for origin in ("computed", "reported"))
    agrees = computed == reported if all(has.values()) else None
    return {"computed": computed, "reported": reported if has["reported"] else None, "agrees": agrees}
