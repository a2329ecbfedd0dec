"""Open spans and findings of one group of the model, until they end."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tests.model.allocation import Held, Queue
from tests.model.rows import Tables


class GroupRows:
    """Spans and findings of one group."""

    members: dict[str, Any]

    def __init__(self, cluster: str, name: str, system: str, tables: Tables) -> None:
        self.cluster, self.name, self.system, self.tables = cluster, name, system, tables
        self.generation = 0
        self.revoked: list[Queue] = []  # by the first half of a cooperative move
        self.spans: dict[tuple[str, Queue, str], dict[str, Any]] = {}  # (origin, queue, member) -> open span
        self.findings: dict[str, dict[str, Any]] = {}

    def open_spans(self, at: int, origin: str, held: Held, inferred: Collection[str] | None = ()) -> None:
        """Open new spans and close old ones; ``inferred``: topics for which that is a guess, None: all of them."""
        wanted = {(origin, queue, name) for name, queues in held.items() for queue in queues}
        self.close_spans(at, wanted, origin)
        for key in wanted - self.spans.keys():
            _, (topic, broker, queue_id), name = key
            self.spans[key] = {
                "cluster": self.cluster, "group_id": self.name, "topic": topic, "broker": broker, "queue_id": queue_id,
                "member_id": name, "origin": origin, "generation": self.generation,
                "valid_from": at, "valid_to": None,
                "inferred": inferred is None or topic in inferred,
            }  # fmt: skip

    def close_spans(self, at: int, kept: Any, origin: str | None = None) -> None:
        for key in [key for key in self.spans if key not in kept and origin in (None, key[0])]:
            span = self.spans.pop(key)
            if at > span["valid_from"]:
                self.tables.spans.append(span | {"valid_to": at})

    def rename_spans(self, at: int, former: str, name: str, origin: str | None = None) -> None:
        """End the spans of an id, and open the same spans under another id."""
        for key in [key for key in self.spans if key[2] == former and origin in (None, key[0])]:
            span = self.spans.pop(key)
            if at > span["valid_from"]:
                self.tables.spans.append(span | {"valid_to": at})
            fresh = {"member_id": name, "valid_from": max(at, span["valid_from"])}
            self.spans.setdefault((key[0], key[1], name), span | fresh)

    def find(self, at: int, row: dict[str, Any], anew: bool = False) -> None:
        """Open and close findings by a row; ``anew``: more became known of an older row."""
        strategies = (row["strategy"] or "").split(", ")
        described = [member.fields().get("subscriptions") for member in self.members.values()]
        sets = {tuple(sorted(set(topics))) for topics in described if topics is not None}
        is_moving = self.revoked and row["members_after"] and row["status"] == "completed"
        current = {
            "strategy_failed": row["status"] == "failed",
            "expected_differs": row["agrees"] is False,
            "generations_missed": bool(row["generations_missed"]),
            "strategies_differ": self.system != "kafka" and len(strategies) > 1,
            "subscriptions_differ": self.system == "rocketmq" and len(sets) > 1,
            "unassigned_queues": bool(row["unassigned_queues"] and row["members_after"] and not is_moving),
            "idle_members": bool(row["idle_members"] and row["queues_after"]),
        }
        for kind, is_so in current.items():
            if anew and kind in ("strategy_failed", "generations_missed"):
                continue
            if kind == "idle_members" and is_moving:  # the second half of the move shows it
                continue
            self.finding(at, kind, is_so)

    def finding(self, at: int, kind: str, is_so: bool) -> None:
        if is_so and kind not in self.findings:
            self.findings[kind] = {
                "cluster": self.cluster, "group_id": self.name, "kind": kind, "opened_at": at, "closed_at": None,
            }  # fmt: skip
        elif not is_so and kind in self.findings:
            self.tables.findings.append(self.findings.pop(kind) | {"closed_at": at})
