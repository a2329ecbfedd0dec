"""The columns that are compared, and the tables as lists of plain rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

REBALANCE = (
    "cluster",
    "group_id",
    "event_time",
    "generation",
    "generation_source",
    "trigger",
    "triggers",
    "strategy",
    "leader",
    "mode",
    "status",
    "members_before",
    "members_after",
    "queues_before",
    "queues_after",
    "queues_kept",
    "queues_assigned",
    "queues_revoked",
    "queues_moved",
    "generations_missed",
    "idle_members",
    "unassigned_queues",
    "spread",
    "agrees",
    "queues_differing",
)
SPAN = (
    "cluster",
    "group_id",
    "topic",
    "broker",
    "queue_id",
    "member_id",
    "origin",
    "generation",
    "valid_from",
    "valid_to",
    "inferred",
)
MEMBER = (
    "cluster",
    "group_id",
    "member_id",
    "client_id",
    "host",
    "instance_id",
    "rack",
    "subscriptions",
    "strategies",
    "joined_at",
    "left_at",
    "left_reason",
    "last_heartbeat_at",
)
GROUP = (
    "cluster",
    "group_id",
    "state",
    "mode",
    "strategy",
    "generation",
    "generation_source",
    "members",
    "queues",
    "idle_members",
    "unassigned_queues",
    "spread",
    "last_rebalance_at",
)
# Findings that follow from the group alone.
FINDINGS = frozenset(
    {
        "strategy_failed",
        "expected_differs",
        "generations_missed",
        "strategies_differ",
        "subscriptions_differ",
        "unassigned_queues",
        "idle_members",
    }
)


BALANCE = ("idle_members", "unassigned_queues", "spread")


@dataclass
class Tables:
    """What is compared, each in an order that depends on nothing but its rows."""

    rebalances: list[dict[str, Any]] = field(default_factory=list)
    spans: list[dict[str, Any]] = field(default_factory=list)
    members: list[dict[str, Any]] = field(default_factory=list)
    groups: list[dict[str, Any]] = field(default_factory=list)
    topics: list[dict[str, Any]] = field(default_factory=list)
    findings: list[dict[str, Any]] = field(default_factory=list)
    late: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)


def plain(row: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return these columns of a row, tuples as lists."""
    return {name: list(row[name]) if isinstance(row.get(name), tuple) else row.get(name) for name in names}
