"""Lines of the event contract for tests: sound ones of every type, and ways to spoil them."""

from __future__ import annotations

import json
from typing import Any

NOW = 1_795_245_120_000  # 2026-11-21T07:12:00Z

COMMON: dict[str, Any] = {"schema_version": 1, "event_time": NOW, "system": "kafka", "cluster": "c1"}
QUEUE = {"topic": "orders", "broker": "b0", "queue_id": 3}
DESCRIPTION: dict[str, Any] = {
    "client_id": "app-1",
    "host": "10.0.0.7",
    "instance_id": "i1",
    "rack": "r1",
    "client_version": "V5_5_0",
    "language": "JAVA",
    "ordered": True,
    "subscriptions": ["orders", "refunds"],
    "strategies": ["range", "roundrobin"],
    "strategy_settings": {"virtual_nodes": 10, "racks": {"a": [1, 2.5, None, "x", True]}},
    "session_timeout_ms": 10_000,
    "rebalance_timeout_ms": 60_000,
    "owned": [QUEUE],
}
MEMBER = {"group": "g1", "member_id": "m1"}

# One sound event of every type, with every field that its type has.
VALID: dict[str, dict[str, Any]] = {
    "heartbeat": {**COMMON, "type": "heartbeat", **MEMBER},
    "described heartbeat": {**COMMON, "type": "heartbeat", **MEMBER, **DESCRIPTION},
    "member_joined": {**COMMON, "type": "member_joined", **MEMBER, **DESCRIPTION},
    "member_left": {**COMMON, "type": "member_left", **MEMBER, "reason": "shutdown"},
    "topic_queues": {
        **COMMON,
        "type": "topic_queues",
        "topic": "orders",
        "queues": [
            {"broker": "b0", "queue_id": 0, "rack": "r1"},
            {"broker": "b0", "queue_id": 1, "racks": ["r1", "r2"]},
        ],
    },
    "counted topic_queues": {**COMMON, "type": "topic_queues", "topic": "orders", "queue_count": 12},
    "group_settings": {
        **COMMON,
        "type": "group_settings",
        "group": "g1",
        "mode": "broadcasting",
        "strategy": "AVG",
        "strategy_settings": {"rooms": ["a"]},
        "inferred": True,
    },
    "group_snapshot": {
        **COMMON,
        "type": "group_snapshot",
        "group": "g1",
        "generation": 7,
        "state": "Stable",
        "joined_at": "2026-11-21T07:11:58.5Z",
        "strategy": "range",
        "leader": "m1",
        "members": [{"member_id": "m1", **DESCRIPTION}, {"member_id": "m2"}],
        "assignments": {"m1": [QUEUE], "m2": []},
        "departures": [
            {"member_id": "m0", "kind": "left", "host": "10.0.0.6:4711", "at": NOW - 300, "evidence": "unregistered"},
            {"member_id": "m9", "kind": "expired", "inferred": False},
        ],
        "observations": [{"kind": "brokers_disagree", "detail": "b0 lists m1"}, {"kind": "something_new"}],
    },
    "clock": {**COMMON, "type": "clock"},
    "progress": {**COMMON, "type": "progress", "group": "g1", "queues": [{**QUEUE, "offset": 99}]},
    "queue_ends": {**COMMON, "type": "queue_ends", "topic": "orders", "queues": [{"queue_id": 3, "end_offset": 120}]},
    "group_deleted": {**COMMON, "type": "group_deleted", "group": "g1"},
    "commits_deleted": {**COMMON, "type": "commits_deleted", "group": "g1", "queues": [QUEUE]},
    "assignment_reported": {
        **COMMON,
        "type": "assignment_reported",
        **MEMBER,
        "generation": 7,
        "host": "10.0.0.7:4711",
        "queues": [
            {**QUEUE, "locked": True, "held_since": NOW - 9_000, "last_pull_at": NOW - 20, "last_consume_at": NOW - 30},
            {"topic": "orders", "queue_id": 4},
        ],
    },
    "group_record": {
        **COMMON,
        "type": "group_record",
        "protocol": "consumer",
        "record": "member_current",
        **MEMBER,
        "epoch": 3,
        "previous_epoch": 2,
        "state": "unrevoked",
        "partitions": [{"topic": "b4aNrJ45RLuOpWrXbYghEA", "partitions": [0, 1]}],
        "revoking": [{"topic": "b4aNrJ45RLuOpWrXbYghEA", "partitions": [2]}],
    },
    "annotation": {
        **{name: value for name, value in COMMON.items() if name != "system"},
        "type": "annotation",
        "id": "release-42",
        "kind": "deploy",
        "text": "orders 2.4.1\nby the pipeline",
        "from": NOW - 120_000,
        "to": NOW + 86_400_000,
        "url": "https://ci.example/42?a=b",
        "groups": ["orders*"],
        "client_ids": ["orders-[0-9]"],
        "hosts": ["10.0.0.7", "node-?"],
    },
}


def line(event: dict[str, Any]) -> bytes:
    """Write an event as one line, without its line feed."""
    return json.dumps(event).encode()


def with_field(name: str, value: Any, of: str = "heartbeat") -> bytes:
    """Write a sound event with one field set to something else."""
    return line({**VALID[of], name: value})


def without_field(name: str, of: str = "heartbeat") -> bytes:
    """Write a sound event without one field."""
    return line({key: value for key, value in VALID[of].items() if key != name})


def envelope(**changes: Any) -> dict[str, Any]:
    """Put a sound event into a CloudEvents envelope."""
    attributes = {
        "specversion": "1.0",
        "id": "17",
        "source": "/collectors/a",
        "type": "group.event",
        "data": VALID["clock"],
    }
    return {key: value for key, value in {**attributes, **changes}.items() if value is not ...}
