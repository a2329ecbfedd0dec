"""The model of clusters whose groups are all of Kafka's new protocol: events in, tables out, sorted and replayed."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tests.model.new_protocol_groups import NewProtocolGroup
from tests.model.rows import Tables
from tests.model.times import Event
from tests.model.topics import Topics


def new_protocol_tables(batches: Sequence[Sequence[Event]]) -> Tables:
    """Return the expected tables; nothing comes late, so batches do not matter."""
    tables, topics, names = Tables(), Topics(), dict[str, str]()
    groups: dict[str, NewProtocolGroup] = {}
    distinct = {json.dumps(event, sort_keys=True): event for batch in batches for event in batch}
    events = sorted(distinct.values(), key=lambda event: (event["event_time"], event.get("offset", 0)))
    cluster = events[0]["cluster"] if events else ""
    for at in sorted({event["event_time"] for event in events}):
        mine = [event for event in events if event["event_time"] == at]
        for event in sorted((event for event in mine if event["type"] == "topic_queues"), key=lambda e: e["event_id"]):
            topics.take(event)
            names[event["topic_id"]] = event["topic"]
        for name in sorted({event["group"] for event in mine if "group" in event}):
            group = groups.setdefault(name, NewProtocolGroup(cluster, name, topics, names, tables))
            for event in mine:
                if event["type"] == "member_left" and event["group"] == name:
                    group.left[event["member_id"]] = (event["how"], at)
            records = [event for event in mine if event["type"] == "group_record" and event["group"] == name]
            group.take(at, sorted(records, key=_place))
    for group in groups.values():
        group.finish()
    tables.topics += topics.rows(cluster)
    tables.rebalances.sort(key=lambda row: (row["cluster"], row["group_id"]))
    for rows in (tables.spans, tables.members, tables.findings, tables.groups, tables.topics):
        rows.sort(key=repr)
    return tables


# Without offsets, records of one time apply in this order; what is deleted comes first where another takes its place.
_KINDS = ("topics", "pattern", "member", "group", "member_target", "target", "member_current")


def _place(record: Event) -> tuple[int, ...]:
    if "offset" in record:
        return (0, record["offset"])
    is_deleted = record.get("deleted", False)
    return (
        0 if is_deleted and record["record"] != "group" else 1,
        _KINDS.index(record["record"]),
        record.get("epoch", 0),
    )
