"""Core: the event contract as JSON Schema, from the types that parse it. No I/O.

The schema covers types and single values. ``udfs.ingest.validation`` checks the rest: lists that agree,
duplicates, times ahead of the clock.
"""

from __future__ import annotations

from typing import Any

import msgspec

from udfs.model.annotations import ContractEvent
from udfs.model.timestamps import EARLIEST_MS, LATEST_MS

_WITHOUT_CONTROL_CHARACTERS = r"^[^\u0000-\u001f\u007f]*$"
_RFC_3339 = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})$"


def event_schema() -> dict[str, Any]:
    """Return the JSON Schema of one event."""
    (union,), definitions = msgspec.json.schema_components(
        [ContractEvent], schema_hook=lambda _: {"description": "any JSON"}, ref_template="#/$defs/{name}"
    )
    for definition in definitions.values():
        _add_limits(definition)
    topic_queues = definitions["TopicQueues"]
    topic_queues["anyOf"] = [
        {"required": ["queues"], "properties": {"queues": {"type": "array"}}},
        {"required": ["queue_count"], "properties": {"queue_count": {"type": "integer"}}},
    ]
    definitions["GroupRecord"]["allOf"] = [
        {
            "if": {"properties": {"record": {"pattern": "^member"}}},
            "then": {"required": ["member_id"], "properties": {"member_id": {"type": "string"}}},
        },
        {
            "if": {
                "properties": {"record": {"enum": ["group", "target", "member_current"]}, "deleted": {"const": False}}
            },
            "then": {"required": ["epoch"], "properties": {"epoch": {"type": "integer"}}},
        },
    ]
    # It is not a keyword of JSON Schema; each alternative names its own type instead.
    union.pop("discriminator", None)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Event of the rebalance monitor, contract version 1",
        **union,
        "$defs": definitions,
    }


def _add_limits(node: Any) -> None:
    """Add the limits of the types: names have no control characters, times are between 2000 and 2100."""
    if isinstance(node, list):
        for item in node:
            _add_limits(item)
    if not isinstance(node, dict):
        return
    if node.get("minLength") == 1:
        node["pattern"] = _WITHOUT_CONTROL_CHARACTERS
    if node.get("format") == "date-time":
        node["pattern"] = _RFC_3339
    if node.get("description") == "Epoch milliseconds":
        node["minimum"], node["maximum"] = EARLIEST_MS, LATEST_MS
    for item in node.values():
        _add_limits(item)
