"""What an assignor of Kafka's coordinator answers, for the model's coordinator and for the model of its records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from udfs.model.events import QueueInfo, QueueRef
from udfs.strategies.kafka.server import MembersPut, coordinator_orders
from udfs.strategies.kafka.server_vote import preferred_assignors
from udfs.strategies.problem import Participant, Problem, Topic
from udfs.strategies.registry import registered

Target = dict[str, list[tuple[str, int]]]  # member -> topics by name, partitions


def server_answer(
    assignor: str,
    members: Mapping[str, Mapping[str, Any]],
    topics: Mapping[str, tuple[str, int]],
    previous: Mapping[str, Sequence[tuple[str, int]]],
    put: MembersPut,
    release: str = "4.1.0",
) -> Target:
    """Return a target.

    Args:
        members: ``instance_id``, ``subscriptions`` and ``pattern`` of each.
        topics: Id and number of partitions by name. previous: The target before, in the order of its records.
        put: The order of the coordinator's own map of members.
    """
    problem = Problem(
        group="g",
        members=tuple(
            Participant(
                member_id=name,
                name=name,
                instance_id=members[name].get("instance_id"),
                subscriptions=tuple(members[name]["subscriptions"]),
                pattern=members[name].get("pattern"),
            )
            for name in put.members
        ),
        topics={
            name: Topic(name=name, queues=tuple(map(QueueInfo, range(count))), topic_id=topic_id)
            for name, (topic_id, count) in topics.items()
        },
        settings={"coordinator": release},
        previous={name: tuple(QueueRef(*queue) for queue in queues) for name, queues in previous.items()},
        member_slots=put.slots,
    )
    held = registered(f"kafka.server.{assignor}", "kafka").answer(problem)
    return {name: [(queue.topic, queue.queue_id) for queue in held[name]] for name in members}


def likely_order(members: Iterable[str], asking: str | None = None) -> MembersPut:
    """Return the order in which a coordinator most likely puts its members into an assignor's map."""
    return next(coordinator_orders(list(members), [] if asking is None else [asking]))


def voted(named: Sequence[str], default: str, asking: str | None = None) -> list[str]:
    """Return the assignors that may win, the likeliest first; ``asking``: the vote of who joined last."""
    return preferred_assignors({name: named.count(name) for name in named}, asking) or [default]
