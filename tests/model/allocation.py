"""The computed assignment: which strategy is chosen, and what is requested of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from udfs.model.errors import StrategyError
from udfs.model.events import QueueInfo, QueueRef
from udfs.model.systems import SYSTEMS
from udfs.strategies.problem import Participant, Problem, Topic
from udfs.strategies.registry import qualified_name, registered

Queue = tuple[str, str | None, int]
Held = dict[str, list[Queue]]
# Ties between the four that Kafka ships, in the order of a HashMap of 16 slots (PROTOCOLS.md 5.1).
_TIES = ("sticky", "range", "roundrobin", "cooperative-sticky")


class NoAnswer(Exception):  # noqa: N818 - an answer of the model, not a failure of it
    """The group's strategy cannot answer."""


def wanted_queues(members: Mapping[str, Mapping[str, Any]], topics: Mapping[str, list[dict[str, Any]]]) -> list[Queue]:
    """Return the queues of subscribed, known topics."""
    subscribed = {topic for member in members.values() for topic in member.get("subscriptions") or ()}
    return sorted(
        ((topic, queue["broker"], queue["queue_id"]) for topic in subscribed for queue in topics.get(topic, ())),
        key=repr,
    )


def chosen_strategy(system: str, named: str | None, members: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the names of the strategies that allocate."""
    if named:
        return qualified_name(named, system)
    lists = [list(member["strategies"]) for member in members.values() if member.get("strategies")]
    if system == "kafka":
        if not members:
            raise NoAnswer("a vote over nobody")
        return f"kafka.{_vote(lists)}" if lists else SYSTEMS[system].default_strategy
    return ", ".join(sorted({_own(system, member) for member in members.values()})) or SYSTEMS[system].default_strategy


def _vote(lists: list[list[str]]) -> str:
    common = set(lists[0]).intersection(*lists)
    if not common:
        raise NoAnswer("no common strategy")
    votes = Counter(next(name for name in names if name in common) for names in lists)
    return min(votes, key=lambda name: (-votes[name], _TIES.index(name)))


def _own(system: str, member: Mapping[str, Any]) -> str:
    return (
        qualified_name(member["strategies"][0], system)
        if member.get("strategies")
        else SYSTEMS[system].default_strategy
    )


def allocate(
    *,
    group: str,
    system: str,
    mode: str,
    named: str | None,
    members: Mapping[str, Mapping[str, Any]],
    topics: Mapping[str, list[dict[str, Any]]],
    owned: Mapping[str, list[Queue]],
    stayed: Collection[str] = (),
) -> tuple[str | None, Held]:
    """Return the strategy, and the queues that each member should hold.

    Args:
        members: Descriptions, in the order in which the members joined.
        owned: What members that were there before held. stayed: Who was, of those whose generations are counted.
    """
    if mode != "clustering":
        everything = wanted_queues(members, topics)
        if mode == "message":  # nobody owns single queues here: one entry counts for all queues of a broker
            everything = list(dict.fromkeys((topic, broker, -1) for topic, broker, _ in everything))
        held = {
            name: [queue for queue in everything if queue[0] in (member.get("subscriptions") or ())]
            for name, member in members.items()
        }
        return named and qualified_name(named, system), held
    strategy = chosen_strategy(system, named, members)
    problem = Problem(
        group=group,
        members=tuple(_participant(name, member, owned, name in stayed) for name, member in members.items()),
        topics={name: Topic(name=name, queues=_infos(queues)) for name, queues in topics.items()},
    )
    there = set(wanted_queues(members, topics))
    held = {}
    for name, member in members.items():
        own = strategy if system == "kafka" or named else _own(system, member)
        try:
            answer = registered(own, system).answer(problem)
        except StrategyError as error:
            raise NoAnswer(error.code) from error
        queues = [(queue.topic, queue.broker, queue.queue_id) for queue in answer.get(name, [])]
        # Kafka's sticky assignors keep partitions that no longer exist because their topic was made again.
        held[name] = [queue for queue in dict.fromkeys(queues) if queue in there]
    return strategy, held


def _participant(name: str, member: Mapping[str, Any], owned: Mapping[str, list[Queue]], stayed: bool) -> Participant:
    queues, since = owned.get(name) or ([] if stayed else None), 1 if stayed else None
    if member.get("owned") is not None:  # as it reports itself
        queues = [(queue["topic"], None, queue["queue_id"]) for queue in member["owned"]]
    elif queues:
        since = 1
    return Participant(
        member_id=name,
        name=name,
        instance_id=member.get("instance_id"),
        rack=member.get("rack"),
        subscriptions=tuple(member.get("subscriptions") or ()),
        strategies=tuple(member.get("strategies") or ()),
        owned=None if queues is None else tuple(QueueRef(topic, number, broker) for topic, broker, number in queues),
        generation=None if queues is None else since,
    )


def _infos(queues: list[dict[str, Any]]) -> tuple[QueueInfo, ...]:
    ordered = sorted(queues, key=lambda queue: (queue["broker"] or "", queue["queue_id"]))
    return tuple(
        QueueInfo(queue_id=queue["queue_id"], broker=queue["broker"], racks=queue["racks"]) for queue in ordered
    )


def compared(before: Mapping[Queue, set[str]], after: Mapping[Queue, set[str]]) -> dict[str, int]:
    """Return the counts of a row."""
    counts = {"queues_kept": 0, "queues_moved": 0, "queues_assigned": 0, "queues_revoked": 0}
    for queue in before.keys() | after.keys():
        old, new = before.get(queue, set()), after.get(queue, set())
        moved = min(len(old - new), len(new - old))
        counts["queues_kept"] += len(old & new)
        counts["queues_moved"] += moved
        counts["queues_assigned"] += len(new - old) - moved
        counts["queues_revoked"] += len(old - new) - moved
    return counts


def owners(held: Held) -> dict[Queue, set[str]]:
    """Return who holds each queue."""
    found: dict[Queue, set[str]] = {}
    for member, queues in held.items():
        for queue in queues:
            found.setdefault(queue, set()).add(member)
    return found
