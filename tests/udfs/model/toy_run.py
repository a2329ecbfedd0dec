"""Run as a process: one more cluster system, of a profile and a strategy alone, from its lines to its rows."""

from __future__ import annotations

import json
import sys
from typing import Literal

from udfs.model import systems
from udfs.model.systems import BY_NUMBER, SYSTEMS, SystemProfile

TOY = SystemProfile(name="toy", title="Toy", number=200, default_strategy="toy.all-to-first")
CLOCK_MS = 1_780_000_000_000


def main() -> None:
    """Register the system before anything else is imported, as if it stood in ``systems.py``; print its rows."""
    SYSTEMS[TOY.name], BY_NUMBER[TOY.number] = TOY, TOY.name
    systems.System = Literal[tuple(SYSTEMS)]  # type: ignore[misc]
    from streaming.settings.model import load
    from tests.simulation.core_run import CoreRun
    from udfs.model.events import QueueRef
    from udfs.strategies.problem import Assignment, Problem
    from udfs.strategies.registry import Registered, register

    def all_to_first(problem: Problem) -> Assignment:
        named = [(name, queue) for name, topic in problem.topics.items() for queue in topic.queues]
        queues = [QueueRef(name, queue.queue_id, queue.broker) for name, queue in named]
        first, *others = sorted(member.member_id for member in problem.members)
        return {first: queues, **{member: [] for member in others}}

    register("toy.all-to-first", Registered(answer=all_to_first, spread="none"))
    common = {"schema_version": 1, "system": "toy", "cluster": "c"}
    queues = [{"broker": broker, "queue_id": 0} for broker in ("x", "y")]
    events = [
        {"event_time": CLOCK_MS, "type": "topic_queues", "topic": "t", "queues": queues},
        {"event_time": CLOCK_MS + 1, "type": "member_joined", "group": "g", "member_id": "m", "subscriptions": ["t"]},
        {"event_time": CLOCK_MS + 2, "type": "heartbeat", "group": "g", "member_id": "m"},
        {"event_time": CLOCK_MS + 90_000, "type": "clock"},
    ]
    run = CoreRun(
        load(None, {"session_timeouts.toy_ms": 30_000, "unread_after.toy_ms": 300_000, "state.shards": 2}).core_config()
    )
    for event in events:
        run.batch(CLOCK_MS + 10**6, [json.dumps(common | event).encode()])
    run.flush(CLOCK_MS + 10**6)
    rows = [
        {"system": row["system"], "strategy": row["strategy"], "trigger": row["trigger"], "queues": row["queues_after"]}
        | {"after_ms": row["event_time"] - CLOCK_MS}
        for row in run.rows()
    ]
    sys.stdout.write(json.dumps({"rows": rows, "rejected": [rejection.reason for rejection in run.rejected]}))


if __name__ == "__main__":
    main()
