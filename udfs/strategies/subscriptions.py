"""Core: who subscribes to what, and a topic's queues in the orders that clients sort them into. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat

from udfs.events import QueueRef
from udfs.java import string_order
from udfs.strategies.problem import Participant, Problem, Topic


def kinds_of(members: Sequence[Participant]) -> tuple[list[tuple[str, ...]], list[int]]:
    """Answer the distinct lists of subscriptions, and for each member the place of its own among them.

    Lists that are one object are compared no further: thousands of topics take their time.
    """
    places: dict[tuple[str, ...], int] = {}
    known: dict[int, int] = {}
    found = []
    for member in members:
        names = member.subscriptions
        place = known.get(id(names))
        if place is None:
            place = known[id(names)] = places.setdefault(names, len(places))
        found.append(place)
    return list(places), found


def subscribers_by_topic(members: Sequence[Participant]) -> dict[str, list[int]]:
    """Answer each subscribed topic's subscribers as ascending indexes into ``members``.

    Returns: topics with the same subscribers share one list, so that ``is`` tells them.
    """
    subscriptions, places = kinds_of(members)
    kinds: list[list[int]] = [[] for _ in subscriptions]
    for index, place in enumerate(places):
        kinds[place].append(index)
    kinds_by_topic: dict[str, list[int]] = {}
    for kind, topics in enumerate(subscriptions):
        for topic in dict.fromkeys(topics):
            kinds_by_topic.setdefault(topic, []).append(kind)
    lists: dict[tuple[int, ...], list[int]] = {}
    found = {}
    for topic, kinds_of_topic in kinds_by_topic.items():
        key = tuple(kinds_of_topic)
        if key not in lists:
            lists[key] = sorted(index for kind in key for index in kinds[kind])
        found[topic] = lists[key]
    return found


def known_topics(problem: Problem, subscribed: Iterable[str]) -> list[Topic]:
    """Answer the subscribed topics that have queues, by name; unknown and empty ones are skipped."""
    topics = problem.topics
    return [topics[name] for name in sorted(subscribed) if name in topics and topics[name].queues]


def by_queue_id(topic: Topic) -> list[QueueRef]:
    """Answer the topic's queues as Kafka's clients sort partitions."""
    refs = _refs(topic)
    numbers = [ref.queue_id for ref in refs]
    if numbers != sorted(numbers):
        refs.sort(key=lambda ref: ref.queue_id)
    return refs


def by_broker(topic: Topic) -> list[QueueRef]:
    """Answer the topic's queues as RocketMQ's ``MessageQueue#compareTo`` sorts them."""
    refs = _refs(topic)
    brokers = {ref.broker for ref in refs}
    if len(brokers) == 1:
        return by_queue_id(topic)
    keys = {broker: string_order(broker or "") for broker in brokers}
    refs.sort(key=lambda ref: (keys[ref.broker], ref.queue_id))
    return refs


def _refs(topic: Topic) -> list[QueueRef]:
    # By position and without a loop of its own: this is most of what the arithmetic strategies do.
    queues = topic.queues
    return list(
        map(QueueRef, repeat(topic.name), [queue.queue_id for queue in queues], [queue.broker for queue in queues])
    )


def distinct_queues(refs: Iterable[QueueRef]) -> list[QueueRef]:
    """Answer the queues once each, in the order of their first place."""
    return list(dict.fromkeys(refs))
