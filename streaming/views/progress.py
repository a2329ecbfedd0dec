"""Shell: a group's offsets in each of its queues, as `kafka-consumer-groups.sh --describe` lists them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from streaming.tables.arrow_rows import from_arrow
from streaming.tables.schema import QUEUE_PROGRESS, Row
from streaming.views.assignments import SHARED_BY_MESSAGE, current_spans
from streaming.views.group_state_texts import coordinator_state, is_under_way
from streaming.views.lag_ages import LagAge, lag_ages
from streaming.views.members import queues_of
from streaming.views.reader import Except, Reader, Within, time_scalar
from udfs.model.systems import SYSTEMS

_Queue: TypeAlias = tuple[str, str | None, int]
# For all groups together only rows of this span are read; for one group, also older rows of queues that did not move in
# it.
RECENT_MS = 3_600_000
# Topics that a system creates for each group: clients subscribe to them by themselves.
_OWN_TOPICS = tuple(profile.retry_prefix for profile in SYSTEMS.values() if profile.retry_prefix is not None)
_NAMES = ("topic", "broker", "queue_id")
_ORDER = ("event_time", "committed_at", "end_at")
_WRITTEN = ("written_offset", "written_at")
_OFFSETS = ("committed_offset", "committed_at", "end_offset", "end_at", "start_offset", "lag")


def progress(reader: Reader, group: Mapping[str, Any], members: Sequence[Row]) -> list[Row]:
    """Return one row for each queue and owner of a group: offsets as last written, lag, and the queue's owner.

    Args:
        group: Its row in ``groups``. members: Its current members.
    Returns: by queue and owner; a queue without an owner has one row, and so does a queue of the members' topics
        without any commit. An end offset before the commit is older than the commit, and the lag is null.
        ``lag_ms`` and what comes with it are those of ``LagAge``.
        ``lag_reliable`` is false then, and while the queue moves: the group is rebalancing, no member holds the queue,
        or its owner has not committed yet. Where members share messages, queues do not move. Members of a streams group
        own tasks, not queues, so its lag is reliable while it is stable. ``is_left_over``: No member subscribes to the
        topic, so nobody is going to read it; None if that is not known.
    """
    where = {"cluster": group["cluster"], "group_id": group["group_id"]}
    owners: dict[_Queue, list[Row]] = {}
    for span in _owned(reader, group):
        owners.setdefault(_queue_of(span), []).append(span)
    newest = _newest(reader, where)
    newest = {queue: row for queue, row in newest.items() if queue in owners or not _is_deleted(row)}
    ages = lag_ages(
        reader, where, {queue: _without_older_end(row) for queue, row in newest.items()}, _known_ms(reader, newest)
    )
    described = {row["member_id"]: row for row in members}
    wanted = None if _has_tasks(group) else subscribed_topics([member.get("subscriptions") for member in members])
    rows = []
    listed = owners.keys() | newest.keys() | (_subscribed(reader, group, members) if owners else set())
    for queue in sorted(listed, key=lambda queue_key: (queue_key[0], queue_key[1] or "", queue_key[2])):
        offsets = _without_older_end(newest.get(queue, {}))
        for span in owners.get(queue, [{}]):
            member = described.get(span.get("member_id"), {})
            rows.append(
                {
                    **where,
                    **dict(zip(_NAMES, queue, strict=True)),
                    **{name: offsets.get(name) for name in _OFFSETS},
                    **ages.get(queue, LagAge())._asdict(),
                    "lag_reliable": _is_reliable(group, span, offsets, has_members=bool(members)),
                    "is_left_over": is_left_over(queue[0], wanted),
                    "member_id": span.get("member_id"),
                    "host": member.get("host"),
                    "client_id": member.get("client_id"),
                }
            )
    return rows


def _known_ms(reader: Reader, newest: Mapping[_Queue, Row]) -> int:
    """Return until when the tables know how far queues have come, at least."""
    observed = (row[name] for row in newest.values() for name in ("committed_at", "end_at"))
    times: list[int] = [at for at in observed if at is not None]
    return max([reader.newest_ms("queue_progress", "event_time") or 0, *times])


def subscribed_topics(subscriptions: Iterable[Sequence[str] | None]) -> frozenset[str] | None:
    """Return the topics to which a group's members subscribe; None if it has none, or if one's topics are unknown."""
    found = [frozenset(topics or ()) for topics in subscriptions]
    return frozenset().union(*found) if found and all(found) else None


def is_left_over(topic: str, wanted: frozenset[str] | None) -> bool | None:
    """Return whether commits of a topic are left over from a former subscription; None if that is not known.

    Args:
        wanted: The result of ``subscribed_topics``.
    """
    if wanted is None:
        return None
    return topic not in wanted and not topic.startswith(_OWN_TOPICS)


def _subscribed(reader: Reader, group: Mapping[str, Any], members: Sequence[Row]) -> set[_Queue]:
    """Return the current queues of the topics to which members subscribe."""
    if group.get("system") is None or _has_tasks(group):
        return set()
    per_broker = SYSTEMS[group["system"]].counts_queues_per_broker
    topics = {topic for member in members for topic in member.get("subscriptions") or ()}
    where = {"cluster": group["cluster"], "topic": topics}
    rows = reader.rows("topics", where=where, keep=lambda found: found["valid_to"].is_null()) if topics else []
    return {
        (row["topic"], queue["broker"] if per_broker else None, queue["queue_id"])
        for row in rows
        for queue in row["queues"] or ()
    }


def _without_older_end(offsets: Row) -> Row:
    """Return offsets without a lag if the end offset was read before the commit, because it proves nothing."""
    committed, end = offsets.get("committed_offset"), offsets.get("end_offset")
    is_older = committed is not None and end is not None and end < committed
    return {**offsets, "lag": None} if is_older else offsets


def _owned(reader: Reader, group: Mapping[str, Any]) -> list[Row]:
    """Return the owner of each queue, from the spans, or from the group's row while it reconciles.

    A queue that is being revoked still has its owner.
    """
    if _has_tasks(group):
        return []
    if group.get("reconciling") is not None:
        return [
            queue | {"member_id": member["member_id"]}
            for member in group["reconciling"]
            for queue in queues_of([*member["assigned"], *member["revoking"]])
        ]
    spans = current_spans(reader, {"cluster": group["cluster"], "group_id": group["group_id"]})
    spans.sort(key=lambda span: (span["member_id"], span["valid_from"]))
    origin = "reported" if any(span["origin"] == "reported" for span in spans) else "computed"
    return [span for span in spans if span["origin"] == origin and span["queue_id"] != SHARED_BY_MESSAGE]


def recent_rows(reader: Reader) -> Within | None:
    """Return the last hour of ``queue_progress``; None if it is empty."""
    newest_ms = reader.newest_ms("queue_progress", "event_time")
    return None if newest_ms is None else Within(newest_ms - RECENT_MS)


def groups_of_topic(reader: Reader, cluster: str, topic: str) -> list[str]:
    """Return the names of the groups that currently own queues of a topic, or committed there recently; sorted."""
    owners = {span["group_id"] for span in current_spans(reader, {"cluster": cluster, "topic": topic})}
    committers = _recent_committers(reader, cluster, topic)
    # A poll in which a group is missing shows nothing of its offsets; their rows end without a last one.
    where = {"cluster": cluster, "group_id": committers - owners}
    present = reader.read("groups", columns=["group_id"], where=where)
    return sorted({*owners, *present["group_id"].to_pylist()})


def _recent_committers(reader: Reader, cluster: str, topic: str) -> set[str]:
    """Return the groups with a commit on a topic that moved within the last hour, and was not deleted since."""
    recent = recent_rows(reader)
    if recent is None:
        return set()
    newest = _last_rows(reader, {"cluster": cluster, "topic": topic, "event_time": recent})
    return {row["group_id"] for row in newest if row["committed_offset"] is not None}


def lag_text(row: Row) -> str:
    """Return the lag of a queue; a ? means that it is not reliable. Commits that are left over have none."""
    if row["lag"] is None or row["is_left_over"]:
        return "-"
    return f"{row['lag']}" if row["lag_reliable"] else f"{row['lag']}?"


def _is_reliable(group: Mapping[str, Any], span: Row, offsets: Row, *, has_members: bool) -> bool | None:
    if offsets.get("lag") is None:
        return None if offsets.get("committed_offset") is None or offsets.get("end_offset") is None else False
    if is_under_way(group):
        return False
    if group.get("mode") == "message":
        return True  # messages are shared, and no queue moves
    if _has_tasks(group):
        return coordinator_state(group) in ("stable", "empty")
    if not span:
        return not has_members
    return offsets["committed_at"] is None or offsets["committed_at"] >= span["valid_from"]


def _has_tasks(group: Mapping[str, Any]) -> bool:
    """Return whether members own tasks, which read several queues each: offsets then have no owner."""
    return group.get("protocol") == "streams"


def _newest(reader: Reader, where: Mapping[str, Any]) -> dict[_Queue, Row]:
    """Return the newest row of each queue of a group, however old, because a queue that has stopped still lags.

    For topics all of whose queues moved recently no older rows are read, because a busy group has millions.
    """
    recent = recent_rows(reader)
    if recent is None:
        return {}
    found = {_queue_of(row): row for row in _last_rows(reader, {**where, "event_time": recent})}
    others = Except(_whole_topics(reader, where["cluster"], found.keys()))
    older = _last_rows(reader, {**where, "event_time": Within(None, recent.since_ms), "topic": others})
    return {_queue_of(row): row for row in older} | found


def _whole_topics(reader: Reader, cluster: str, found: Collection[_Queue]) -> frozenset[str]:
    """Return the topics all of whose current queues were found."""
    where = {"cluster": cluster, "topic": {topic for topic, _, _ in found}}
    rows = reader.rows("topics", where=where, keep=lambda topics: topics["valid_to"].is_null())

    def is_found(topic: str, queue: Row) -> bool:
        # Kafka's queues belong to no broker, but a topic's row may name one.
        return any((topic, broker, queue["queue_id"]) in found for broker in (queue["broker"], None))

    described = {row["topic"]: row["queues"] for row in rows if row["queues"]}
    return frozenset(topic for topic, queues in described.items() if all(is_found(topic, queue) for queue in queues))


def _last_rows(reader: Reader, where: Mapping[str, Any]) -> list[Row]:
    """Return the newest row of each group and queue."""
    found: pa.Table | None = None
    columns = ("group_id", *_NAMES, "event_time", *_OFFSETS, *_WRITTEN)
    for block in reader.blocks("queue_progress", columns=columns, where=where):
        found = _last_of_each(block if found is None else pa.concat_tables([found, block]))
    return [] if found is None else from_arrow(QUEUE_PROGRESS, found)


def _last_of_each(rows: pa.Table) -> pa.Table:
    """Return the newest row of each group and queue. group_by() is not used, because it imports pandas."""
    queue = [*(_numbered(rows[name]) for name in ("group_id", "topic", "broker")), rows["queue_id"].combine_chunks()]
    times = [pc.fill_null(rows[name], time_scalar(0)).combine_chunks() for name in _ORDER]
    columns = [*queue, *times]
    names = [str(place) for place in range(len(columns))]
    order = pc.sort_indices(pa.Table.from_arrays(columns, names), sort_keys=[(name, "ascending") for name in names])
    ends: pa.Array | None = None
    for column in (part.take(order) for part in queue):
        changes = pc.not_equal(column[1:], column[:-1])
        ends = changes if ends is None else pc.or_(ends, changes)
    return rows.take(pa.concat_arrays([order[:-1].filter(ends), order[-1:]]))


def _numbered(names: pa.ChunkedArray) -> pa.Array:
    """Return a number for each name, null included."""
    return names.combine_chunks().dictionary_encode("encode").indices


def _is_deleted(row: Row) -> bool:
    """Return whether a row is the last one of a queue whose group or commit was deleted."""
    return row["committed_offset"] is None and row["end_offset"] is None


def _queue_of(row: Row) -> _Queue:
    return row["topic"], row["broker"], row["queue_id"]
