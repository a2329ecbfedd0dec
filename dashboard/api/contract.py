"""Dashboard: the API's OpenAPI description, derived from columns of tables, listings and questions. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from dashboard.questions.catalog import NUMBERS, PARAMETERS, TIMES, Question
from dashboard.reading.listed_advice import ADVICE
from dashboard.reading.listing import AT, SEARCH, SINCE, UNTIL, Listing
from dashboard.reading.overview import ADDED
from streaming.tables.columns import LONG, TEXT, TIME, TRUTH, Column
from streaming.tables.schema import TABLES

Schema = dict[str, Any]

ERROR: Schema = {
    "description": "It cannot be answered",
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "required": ["error", "message"],
                "properties": {"error": {"const": True}, "message": {"type": "string"}},
            }
        }
    },
}
ERRORS: dict[int | str, Schema] = {"4XX": ERROR, "5XX": ERROR}
# Where several tables have a name, the first one's comment counts.
_OF_ALL = {column.name: column for table in reversed(TABLES.values()) for column in table.columns}
TIME_TEXT = "epoch ms, RFC 3339, or before now like 15m, 2h or yesterday"
_TEXT: Schema = {"type": "string"}
_CURSOR: Schema = {"type": ["string", "null"], "description": "Where the next piece begins; null = this is the last"}
_HEADERS: Schema = {
    "X-Total-Count": {"description": "CSV: how many rows fit", "schema": {"type": "integer"}},
    "Link": {"description": 'CSV: address of what follows, rel="next"', "schema": {"type": "string"}},
}


def type_schema(kind: pa.DataType) -> Schema:
    """Return the JSON Schema of a non-null value of a column.

    Example:
        >>> type_schema(pa.list_(pa.string()))
        {'type': 'array', 'items': {'type': ['string', 'null']}}
    """
    if pa.types.is_list(kind):
        return {"type": "array", "items": _or_null(type_schema(kind.value_type))}
    if pa.types.is_struct(kind):
        return {"type": "object", "properties": {field.name: _or_null(type_schema(field.type)) for field in kind}}
    if pa.types.is_timestamp(kind):
        return {"type": "string", "format": "date-time"}
    if pa.types.is_boolean(kind):
        return {"type": "boolean"}
    return {"type": "integer" if pa.types.is_integer(kind) else "string"}


def _or_null(schema: Schema) -> Schema:
    return {**schema, "type": [schema["type"], "null"]}


def row_schema(columns: Sequence[Column]) -> Schema:
    """Return the JSON Schema of a row; every field is present, and may be null."""
    fields: dict[str, Schema] = {}
    for column in columns:
        fields[column.name] = _or_null(type_schema(column.type))
        if column.comment:
            fields[column.name]["description"] = column.comment
    return {"type": "object", "required": [*fields], "properties": fields}


def named(*names: str, **others: pa.DataType) -> list[Column]:
    """Return the tables' columns with these names, and additional ones with the given types."""
    return [_OF_ALL[name] for name in names] + [Column(name, kind, "") for name, kind in others.items()]


def columns_of(listing: Listing) -> list[Column]:
    """Return the columns of a listing, in order."""
    table = ADVICE if listing.name == ADVICE.name else TABLES[listing.table or listing.name]
    found = {column.name: column for column in (*table.columns, *ADDED)}
    return [*(found[name] for name in listing.columns), *listing.added]


def answered(row: Schema, **more: Schema) -> dict[int | str, Schema]:
    """Return the responses of an address that returns rows."""
    fields = {**more, "rows": {"type": "array", "items": row}, "total": {"type": "integer"}, "next_cursor": _CURSOR}
    return {200: _content({"type": "object", "required": [*fields], "properties": fields})}


def object_answered(**fields: Schema) -> dict[int | str, Schema]:
    """Return the responses of an address that returns an object with at least these fields."""
    return {200: _content({"type": "object", "required": [*fields], "properties": fields})}


def _content(schema: Schema) -> Schema:
    content = {"application/json": {"schema": schema}, "text/csv": {"schema": {"type": "string"}}}
    return {"description": "The rows, as JSON or CSV", "headers": _HEADERS, "content": content}


def listing_parameters(listing: Listing) -> Schema:
    """Return the parameters that select rows of a listing, as a part of its operation."""
    about = {
        SEARCH: ("a part of a name, in any case", {"type": "string"}),
        SINCE: (f"{TIME_TEXT}; compared with {' and '.join(listing.times)}", _TEXT),
        UNTIL: (f"{TIME_TEXT}, not part of it; compared with {' and '.join(listing.times)}", _TEXT),
        AT: (f"{TIME_TEXT}; only what was open at this time", _TEXT),
    }
    found = []
    for name in listing.parameters:
        text, schema = about.get(name, ("only rows with this value", _TEXT))
        if values := listing.values.get(name):
            several = {"type": "array", "items": {**_TEXT, "enum": [*values]}}
            found.append(_parameter(name, "only rows with one of these values", several) | {"explode": False})
        else:
            found.append(_parameter(name, text, schema))
    orders = [sign + name for name in listing.orders for sign in ("", "-")]
    sort = f"One of {', '.join(orders)}; {listing.default} unless given"
    return {"parameters": found, "description": f"Return rows of {listing.name}, by `sort`. {sort}."}


def question_parameters(question: Question) -> Schema:
    """Return the parameters of a question, as a part of its operation."""
    found = []
    for name in question.parameters:
        text, schema = PARAMETERS[name], _TEXT
        if name in TIMES:
            text += f"; {TIME_TEXT}"
        elif name in NUMBERS:
            schema = {"type": "integer", "minimum": NUMBERS[name][0], "maximum": NUMBERS[name][1]}
        found.append(_parameter(name, text, schema, is_required=name in question.required))
    return {"parameters": found, "summary": question.title, "description": question.explanation}


def _parameter(name: str, text: str, schema: Mapping[str, Any], *, is_required: bool = False) -> Schema:
    return {"name": name, "in": "query", "required": is_required, "description": text, "schema": schema}


QUESTION = answered({"type": "object"}, columns={"type": "array", "items": {"type": "string"}})
CLUSTERS = answered(
    row_schema(
        named("cluster", "system")
        + named(groups=LONG, members=LONG, queues=LONG, in_trouble=LONG, open_findings=LONG)
        + named(rebalances_hour=LONG, rebalances_day=LONG)
        + named("last_rebalance_at")
        + [Column("widespread_kinds", TEXT, "Kinds of findings that are widespread, with spaces between; null = none")]
        + [Column("freshness", TEXT, "Whether its present is known, as a phrase")]
    )
)
CHURN = answered(
    row_schema(
        named(
            "cluster", "group_id", hour=TIME, rebalances=LONG, queues_moved=LONG, outage_min_ms=LONG, outage_max_ms=LONG
        )
    )
)
FLEET = answered(
    row_schema(
        named("cluster", hour=TIME, rebalances=LONG, outage_min_ms=LONG, outage_max_ms=LONG)
        + named(unread_queues=LONG, stalled_queues=LONG)
    )
)
FOUND = answered(
    row_schema(
        [
            Column("kind", TEXT, "group, member, client, host, topic, queue, rebalance or finding"),
            Column("name", TEXT, "Its name, or the text of a finding"),
            Column("id", TEXT, "What the listing of its kind finds it by"),
            Column("cluster", TEXT, "Its cluster"),
            Column("group_id", TEXT, "Its group, or one that has it; empty if it has none"),
            Column("note", TEXT, "What else is known of it"),
            Column("is_open", TRUTH, "Whether it exists now"),
        ]
    )
)
DELAYS = answered(
    row_schema(named("cluster", hour=TIME, rebalances=LONG, median_ms=LONG, p95_ms=LONG, longest_ms=LONG))
)
PROGRESS = answered(
    row_schema(
        named("cluster", "group_id", "topic", "broker", "queue_id", "committed_offset", "committed_at", "end_offset")
        + named(
            "end_at", "start_offset", "lag", "member_id", "host", "client_id", lag_reliable=TRUTH, is_left_over=TRUTH
        )
        + named(lag_ms=LONG, lag_min_ms=LONG, lag_max_ms=LONG, lag_source=TEXT, deleted_in_ms=LONG)
    )
)
_GAPS: Schema = {"type": "array", "items": {"type": "object"}, "description": "when the cluster was not known"}
LAG = answered(
    row_schema(
        [
            *named("group_id", at=TIME),
            Column("lag", LONG, "Messages, of the queues of which it is known; null = of none"),
            Column("queue_lag", LONG, "Of the queue with most"),
            Column("lag_ms", LONG, "Age of the oldest unread message; null = only a lower bound is known"),
            Column("lag_min_ms", LONG, "Its lower bound"),
            *named(queues=LONG, queues_unknown=LONG),
        ]
    ),
    step_ms={"type": "integer"},
    gaps=_GAPS,
    marks={"type": "array", "items": {"type": "object"}, "description": "the newest rebalances"},
)
_OBJECTS: Schema = {"type": "array", "items": {"type": "object"}}
TOPIC = object_answered(
    spans={"type": "array", "items": row_schema(TABLES["topics"].columns)},
    groups=_OBJECTS,
    queues=_OBJECTS,
    commits=_OBJECTS,
    findings={"type": "array", "items": row_schema(TABLES["findings"].columns)},
)
REBALANCE = object_answered(
    rebalance=row_schema(TABLES["rebalances"].columns),
    annotations={
        "type": "array",
        "items": row_schema(
            [*TABLES["annotations"].columns, *named(when_text=TEXT, concerns_text=TEXT, line=TEXT)],
        ),
    },
)
GROUP_ADVICE = object_answered(
    cluster=_TEXT,
    group_id=_TEXT,
    computed_at={"type": ["string", "null"], "description": "null: it is that of the replay `replay_id`, or none"},
    refused={"type": ["string", "null"], "description": "Why it is not computed on request"},
)
_JOB = (
    Column("app_id", TEXT, "Of its checkpoint"),
    Column("is_alive", TRUTH, "It has reported in time"),
    Column("is_overdue", TRUTH, "It has missed several reports"),
    Column("state", TEXT, "What it does, by its own word, or `gone`"),
    Column("seen_at", TIME, "When it reported last"),
    Column("text", TEXT, "What it does, or since when it does not, and why"),
    Column("note", TEXT, "What is wrong with clocks; empty: nothing"),
    Column("host", TEXT, "Where it runs, or ran"),
    Column("pid", LONG, "Its process"),
    Column("since", TIME, "When its state began"),
    Column("unknown_after_ms", LONG, "It counts as gone this long after its last report"),
)
_PRESENT = (
    *named("cluster", "system"),
    Column("state", TEXT, "known, partly_known, unknown or recording"),
    Column("known_until", TIME, "Event time of the last knowledge; null: there is none"),
    Column("reason", TEXT, "Why it is unknown, or what part of it is; empty otherwise"),
    Column("text", TEXT, "All of this as a phrase"),
)
LIVENESS = object_answered(
    jobs={"type": "array", "items": row_schema(_JOB)},
    clusters={"type": "array", "items": row_schema(_PRESENT)},
    problem={"type": "string", "description": "Why the liveness of a job could not be read; empty: all could be read"},
)
_NUMBERS: Schema = {"type": "array", "items": {"type": ["integer", "null"]}}
_NAMES: Schema = {"type": "array", "items": {"type": "string"}}
TIMELINE = object_answered(
    origin={"type": "string"},
    origins=_NAMES,
    since={"type": "integer"},
    until={"type": "integer"},
    queues=_NAMES,
    members=_NAMES,
    known_until={
        "type": ["integer", "null"],
        "description": "where the knowledge of an unknown cluster ends, epoch ms",
    },
    spans={
        "type": "array",
        "items": _NUMBERS,
        "description": "queue, member, begin and end (null = open), in epoch ms",
    },
    is_cut={"type": "boolean"},
    marks={"type": "array", "items": {"type": "object"}},
    annotations={"type": "array", "items": {"type": "object"}},
    findings={"type": "array", "items": {"type": "object"}},
    traits={"type": "object", "description": "host, version, workload: a value for each member; empty = not known"},
)
