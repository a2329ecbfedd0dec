"""One session of one member of the model."""

from __future__ import annotations

from typing import Any

from tests.model.times import Event

DESCRIPTION = (
    "client_id", "host", "instance_id", "rack", "subscriptions", "strategies", "session_timeout_ms",
)  # fmt: skip
# All fields that an event may carry; no session shows the queues that a member owned.
FIELDS = (*DESCRIPTION, "owned")
TIMEOUTS = {"kafka": 45_000, "rocketmq": 120_000, "metaq": 30_000}


def is_bare(event: Event) -> bool:
    """Return whether an event is a heartbeat without a description."""
    return event["type"] == "heartbeat" and not event.keys() & set(FIELDS)


class Member:
    """One session."""

    def __init__(self, at: int, lives_by: str, described: dict[str, tuple[Any, int]]) -> None:
        self.joined_at = at
        self.began_at = at  # the time of the event that began it, which may have come late
        self.last = at  # the last heartbeat; snapshots do not count
        self.lives_by = lives_by
        self.had_heartbeats = False  # it had heartbeats before it lived by snapshots
        self.described = described  # field -> (value, event time that carried it)
        self.leave_event_at: int | None = None
        self.shown_at = at  # the last generation that contains it
        self.is_new = True  # since the last rebalance
        self.not_before = at  # a changed timeout ends no session before this time

    def fields(self) -> dict[str, Any]:
        return {name: value for name, (value, _) in self.described.items()}
