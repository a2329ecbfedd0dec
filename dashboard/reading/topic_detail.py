"""Dashboard: one topic: who reads it, its queues with their ends and commits, when its queues changed, its findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from dashboard.reading.group_detail import current_members, offsets_of
from dashboard.reading.lag_history import MOST_GROUPS, end_rates
from dashboard.reading.listing_query import plain_rows
from dashboard.reading.overview import overview
from dashboard.reading.questions import Reading
from dashboard.reading.time_range import TimeRange
from streaming.tables.schema import Row
from streaming.terminal.format import queue_name
from streaming.views.name_checks import one_group, require_topic
from streaming.views.progress import recent_rows
from udfs.model.systems import SYSTEMS

Queue: TypeAlias = tuple[str | None, int]
# Findings that name the topic, open or closed, the newest; and spans in which it had the same queues.
MOST_FINDINGS = 50
MOST_SPANS = 50
# A member without queues of the topic is a reader, too, if it subscribes to it. Where members report what they hold,
# that is what counts.
_READERS = """
with spans as (
    select group_id, member_id, broker, queue_id, origin,
        bool_or(origin = 'reported') over (partition by group_id) as is_reported
    from owned
),
owners as (
    select group_id, count(distinct member_id) as owners, count(distinct (coalesce(broker, ''), queue_id)) as owned
    from spans where (origin = 'reported') = is_reported group by group_id
),
subscribed as (
    select group_id, count(*) as subscribers from members
    where list_contains(coalesce(subscriptions, []), ?) group by group_id
),
moved as (
    select group_id, arg_max({'committed': committed_offset}, event_time) as last
    from recent group by group_id, broker, queue_id
),
readers as (
    select group_id from owners union select group_id from subscribed
    union select group_id from moved where last.committed is not null
)
select readers.group_id, system, health, state, members, coalesce(owners, 0) as owners, coalesce(owned, 0) as owned,
    subscribers
from readers join (select * from overview where cluster = ?) as overview using (group_id)
    left join owners using (group_id) left join subscribed using (group_id)
"""
_NAMING = """
select * from found where list_contains(list_transform(coalesce(queues, []), lambda queue: queue.topic), ?)
order by closed_at is not null, opened_at desc, finding_id limit ?
"""


class TopicDetail(NamedTuple):
    """One topic of a cluster.

    Attributes:
        spans: When it had which queues, the newest first: rows of ``topics``.
        groups: Those that own queues of it, subscribe to it, or committed within the last hour: group_id, system,
            health, state, members, owners, owned (queues), subscribers (null: none is known), lag, oldest (the row of
            ``commits`` that waits for longest), queues_unknown, unowned (names of queues that none of its members owns,
            if it has any). The worst first; lag and what follows are null beyond ``MOST_GROUPS``.
        commits: A row of ``progress`` for each queue of these first groups, with ``queue``, its name.
        queues: queue, broker, queue_id, start_offset, end_offset, end_at, kept (messages between start and end),
            end_rate (messages a minute; null: not known), readers (groups with an owner of it), without (groups that
            have members, and none that owns it).
        findings: Those that name queues of it, the open ones in front.
    """

    spans: list[Row]
    groups: list[Row]
    commits: list[Row]
    queues: list[Row]
    findings: list[Row]


def topic_detail(reading: Reading, cluster: str, topic: str, span: TimeRange) -> TopicDetail:
    """Return one topic.

    Args:
        span: The range over which the rate of its ends is measured.

    Raises:
        NotFoundError: There is no such topic.
    """
    require_topic(reading.tables, topic, cluster=cluster)
    of_topic = {"cluster": cluster, "topic": topic}
    spans = sorted(reading.tables.rows("topics", where=of_topic), key=lambda row: -row["valid_from"])[:MOST_SPANS]
    findings = _findings(reading, cluster, topic)
    groups = _readers(reading, cluster, topic)
    named = {row["group_id"] for row in findings if row["closed_at"] is None}
    groups.sort(key=lambda row: (row["group_id"] not in named, -row["owned"], row["group_id"]))
    commits: list[Row] = []
    # Queues are looked up group by group, so only in the first of them.
    for group in groups[:MOST_GROUPS]:
        rows = _commits(reading, cluster, group["group_id"], topic)
        commits += rows
        group |= _lag(rows) | {
            "unowned": [row["queue"] for row in rows if row["member_id"] is None and group["members"]]
        }
    nothing = dict.fromkeys(("lag", "oldest", "queues_unknown", "unowned"))
    groups = [nothing | group for group in groups]
    groups.sort(key=lambda row: (row["group_id"] not in named, row["lag"] is None, -(row["lag"] or 0), row["group_id"]))
    rates = end_rates(reading, cluster, [row["group_id"] for row in groups], span, topic)
    return TopicDetail(spans, groups, commits, _queues(topic, spans, groups, commits, rates), findings)


def _readers(reading: Reading, cluster: str, topic: str) -> list[Row]:
    columns = ["group_id", "member_id", "broker", "queue_id", "origin"]
    where = {"cluster": cluster, "topic": topic}
    owned = reading.tables.read(
        "assignments", columns=[*columns, "valid_to"], where=where, keep=lambda rows: rows["valid_to"].is_null()
    )
    members = reading.tables.read(
        "members",
        columns=["group_id", "subscriptions", "left_at"],
        where={"cluster": cluster},
        keep=lambda rows: rows["left_at"].is_null(),
    )
    recent = reading.tables.read(
        "queue_progress",
        columns=["group_id", "broker", "queue_id", "event_time", "committed_offset"],
        where=where | {"event_time": recent_rows(reading.tables)},
    )
    tables = {"owned": owned, "members": members, "recent": recent, "overview": overview(reading)}
    return plain_rows(reading.sql(_READERS, tables, [topic, cluster]))


def _commits(reading: Reading, cluster: str, name: str, topic: str) -> list[Row]:
    group = one_group(reading.tables, name, cluster)
    rows = offsets_of(reading, group, current_members(reading, cluster, name))
    return [row | {"queue": queue_name(topic, row["broker"], row["queue_id"])} for row in rows if row["topic"] == topic]


def _lag(commits: Sequence[Row]) -> Row:
    """Return how far a group is behind: in messages, and the row of the queue whose next message is the oldest."""
    known = [row for row in commits if row["lag"] is not None]
    oldest = max(known, key=lambda row: row["lag_ms"] or row["lag_min_ms"] or 0, default=None)
    lag = sum(row["lag"] for row in known) if known else None
    return {"lag": lag, "oldest": oldest, "queues_unknown": len(commits) - len(known)}


def _queues(
    topic: str, spans: Sequence[Row], groups: Sequence[Row], commits: Sequence[Row], rates: Mapping[Queue, int]
) -> list[Row]:
    """Return a row for each queue that the topic has, or that a group reads; ends are the newest that any group saw."""
    is_per_broker = any(SYSTEMS[group["system"]].counts_queues_per_broker for group in groups)
    nothing = dict.fromkeys(("start_offset", "end_offset", "end_at"))
    found = {
        (broker if is_per_broker or not groups else None, number): {**nothing} for broker, number in _present(spans)
    }
    for row in commits:
        ends = found.setdefault((row["broker"], row["queue_id"]), {**nothing})
        if row["end_at"] is not None and (ends["end_at"] or 0) <= row["end_at"]:
            ends |= {name: row[name] for name in ("end_offset", "end_at")}
            ends["start_offset"] = row["start_offset"] if row["start_offset"] is not None else ends["start_offset"]
    readers: dict[str, list[str]] = {}
    for row in commits:
        if row["member_id"] is not None:
            readers.setdefault(row["queue"], []).append(row["group_id"])
    lacking = {group["group_id"]: set(group["unowned"]) for group in groups if group["unowned"]}
    rows = []
    for (broker, queue_id), ends in sorted(found.items(), key=lambda item: (item[0][0] or "", item[0][1])):
        name = queue_name(topic, broker, queue_id)
        begin, end = ends["start_offset"], ends["end_offset"]
        rows.append(
            {"queue": name, "broker": broker, "queue_id": queue_id, **ends}
            | {"kept": None if begin is None or end is None else end - begin}
            | {"end_rate": rates.get((broker, queue_id)), "readers": sorted(set(readers.get(name, ())))}
            | {"without": [group for group, names in lacking.items() if name in names]}
        )
    return rows


def _present(spans: Sequence[Row]) -> list[Queue]:
    """Return the queues that a topic has now."""
    present = next((row for row in spans if row["valid_to"] is None), None)
    if present is None:
        return []
    if present["queues"]:
        return [(queue["broker"], queue["queue_id"]) for queue in present["queues"]]
    return [(None, number) for number in range(present["queue_count"] or 0)]


def _findings(reading: Reading, cluster: str, topic: str) -> list[Row]:
    found = reading.tables.read("findings", where={"cluster": cluster})
    return plain_rows(reading.sql(_NAMING, {"found": found}, [topic, MOST_FINDINGS]))
