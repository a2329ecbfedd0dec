"""Dashboard: whatever has a name, found by a part of it: groups, members, clients, hosts, topics, queues, ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, NamedTuple, TypeAlias

from dashboard.reading.listing_query import piece, plain_rows
from dashboard.reading.listings import FINDINGS
from dashboard.reading.questions import Reading
from streaming.tables.schema import Row

# A shorter text would match nearly everything, a longer one is no name.
SHORTEST, LONGEST = 2, 200
HitKind: TypeAlias = Literal["group", "member", "client", "host", "topic", "queue", "rebalance", "finding"]
# A queue as pages name it: topic, broker where queues are numbered by broker, number.
_QUEUE = re.compile(r"(?P<topic>[^@]+)(?:@(?P<broker>.+))?-(?P<number>\d{1,9})")
_REBALANCE = re.compile(r"[0-9a-f]{4,32}")
# Rows with the same name are one: a client has many sessions. What is open comes first, then what begins with the text.
_NAMED = """
select {shown}, count(*) as rows, {open} as is_open from found
where {name} is not null and contains(lower({name}), ?) group by {shown}
order by lower({name}) = ? desc, is_open desc, starts_with(lower({name}), ?) desc, length({name}), {shown} limit ?
"""


class Hit(NamedTuple):
    """One thing that was found.

    Attributes:
        name: Its name, or the text of a finding; id: What its page is found by.
        group_id: Its group, or that of which it is a queue; empty if it has none, or many.
        note: What else is known of it, in a few words.
        is_open: Whether it exists now; true where that does not apply.
    """

    kind: HitKind
    name: str
    id: str
    cluster: str
    group_id: str = ""
    note: str = ""
    is_open: bool = True


def search(reading: Reading, text: str, most: int) -> list[Hit]:
    """Return what has a text in its name, kind by kind.

    Args:
        text: In any case; shorter than ``SHORTEST`` finds nothing. ``LONGEST`` is for callers to refuse.
        most: The number of hits of each kind.
    """
    wanted = text.strip().lower()
    if len(wanted) < SHORTEST:
        return []
    parts: Iterable[Callable[[], list[Hit]]] = (
        lambda: _groups(reading, wanted, most),
        lambda: _members(reading, wanted, most),
        lambda: _topics(reading, wanted, most),
        lambda: _queues(reading, text.strip(), most),
        lambda: _rebalances(reading, wanted, most),
        lambda: _findings(reading, wanted, most),
    )
    return [hit for part in parts for hit in part()]


def _named(
    reading: Reading, table: str, name: str, shown: tuple[str, ...], wanted: str, most: int, ended: str = ""
) -> list[Row]:
    """Return the distinct values of some columns whose name has a text; ``ended`` is null while a row is open."""
    found = reading.columns(table, [*dict.fromkeys((*shown, *([ended] if ended else [])))])
    is_open = f"bool_or({ended} is null)" if ended else "true"
    sql = _NAMED.format(shown=", ".join(shown), name=name, open=is_open)
    return plain_rows(reading.sql(sql, {"found": found}, [wanted, wanted, wanted, most]))


def _groups(reading: Reading, wanted: str, most: int) -> list[Hit]:
    rows = _named(reading, "groups", "group_id", ("group_id", "cluster", "state"), wanted, most)
    return [
        Hit("group", row["group_id"], row["group_id"], row["cluster"], row["group_id"], row["state"]) for row in rows
    ]


def _members(reading: Reading, wanted: str, most: int) -> list[Hit]:
    kinds: Mapping[HitKind, str] = {"member": "member_id", "client": "client", "host": "address"}
    found = []
    for kind, column in kinds.items():
        for row in _named(reading, "members", column, (column, "cluster"), wanted, most, "left_at"):
            note = f"{row['rows']:,} sessions" if row["rows"] > 1 else ""
            found.append(Hit(kind, row[column], row[column], row["cluster"], note=note, is_open=row["is_open"]))
    return found


def _topics(reading: Reading, wanted: str, most: int) -> list[Hit]:
    """Return topics, each with a group that reads it now, if one does."""
    rows = _named(reading, "assignments", "topic", ("topic", "cluster", "group_id"), wanted, most, "valid_to")
    read = {(row["topic"], row["cluster"]) for row in rows}
    hits = [
        Hit("topic", row["topic"], row["topic"], row["cluster"], row["group_id"], is_open=row["is_open"])
        for row in rows
    ]
    alone = _named(reading, "topics", "topic", ("topic", "cluster"), wanted, most, "valid_to")
    hits += [
        Hit("topic", row["topic"], row["topic"], row["cluster"], note="no group is known to read it")
        for row in alone
        if (row["topic"], row["cluster"]) not in read
    ]
    return hits[:most]


def queue_parts(name: str) -> tuple[str, str, int] | None:
    """Return the topic, the broker and the number in the name of a queue; None if it is none.

    Example:
        >>> queue_parts("orders-eu-3"), queue_parts("orders@broker-a-3"), queue_parts("orders")
        (('orders-eu', '', 3), ('orders', 'broker-a', 3), None)
    """
    match = _QUEUE.fullmatch(name)
    return None if match is None else (match["topic"], match["broker"] or "", int(match["number"]))


def _queues(reading: Reading, text: str, most: int) -> list[Hit]:
    """Return the queue that a whole name means, in each group that owns or owned it, else in each cluster."""
    parts = queue_parts(text)
    if parts is None:
        return []
    topic, broker, number = parts
    columns = ["topic", "broker", "queue_id", "cluster", "group_id", "valid_to"]
    found = reading.columns("assignments", columns, {"topic": topic})
    sql = """
        select cluster, group_id, bool_or(valid_to is null) as is_open from found
        where queue_id = ? and (? = '' or coalesce(broker, '') = ?) group by all
        order by is_open desc, cluster, group_id limit ?
    """
    rows = plain_rows(reading.sql(sql, {"found": found}, [number, broker, broker, most]))
    return [
        Hit("queue", text, text, row["cluster"], row["group_id"], is_open=row["is_open"]) for row in rows
    ] or _queues_of_topics(reading, text, (topic, broker, number), most)


def _queues_of_topics(reading: Reading, text: str, parts: tuple[str, str, int], most: int) -> list[Hit]:
    """Return a queue that no group ever owned, in each cluster in which its topic has it."""
    topic, broker, number = parts
    found = reading.columns("topics", ["cluster", "queues", "queue_count", "valid_to"], {"topic": topic})
    sql = """
        select cluster, bool_or(valid_to is null) as is_open from found
        where case when len(coalesce(queues, [])) = 0 then ? < queue_count and ? = '' else len(list_filter(
            queues, lambda queue: queue.queue_id = ? and (? = '' or coalesce(queue.broker, '') = ?)
        )) > 0 end
        group by cluster order by is_open desc, cluster limit ?
    """
    rows = plain_rows(reading.sql(sql, {"found": found}, [number, broker, number, broker, broker, most]))
    note = "no group is known to have owned it"
    return [Hit("queue", text, text, row["cluster"], note=note, is_open=row["is_open"]) for row in rows]


def _rebalances(reading: Reading, wanted: str, most: int) -> list[Hit]:
    """Return rebalances by the beginning of their ids."""
    if not _REBALANCE.fullmatch(wanted):
        return []
    found = reading.columns("rebalances", ["rebalance_id", "cluster", "group_id", "generation"])
    sql = "select * from found where starts_with(rebalance_id, ?) order by rebalance_id limit ?"
    return [
        Hit(
            "rebalance",
            row["rebalance_id"],
            row["rebalance_id"],
            row["cluster"],
            row["group_id"],
            f"generation {row['generation']}",
        )
        for row in plain_rows(reading.sql(sql, {"found": found}, [wanted, most]))
    ]


def _findings(reading: Reading, wanted: str, most: int) -> list[Hit]:
    """Return findings by their id, kind or text, the open ones in front; not those that only name their group."""
    found = piece(reading, FINDINGS, {"q": wanted}, limit=10 * most).rows
    found += piece(reading, FINDINGS, {"finding_id": wanted}, limit=1).rows
    return [
        Hit(
            "finding",
            row["message"],
            row["finding_id"],
            row["cluster"] or "",
            row["group_id"] or "",
            row["kind"],
            row["closed_at"] is None,
        )
        for row in found
        if wanted in f"{row['kind']} {row['message']} {row['finding_id']}".lower()
    ][:most]
