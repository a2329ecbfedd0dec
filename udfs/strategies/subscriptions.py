"""Core: the subscribers of each topic. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from operator import is_

from udfs.model.events import QueueRef
from udfs.strategies.problem import Participant, Problem, Topic


def kinds_of(members: Sequence[Participant]) -> tuple[list[tuple[str, ...]], list[int]]:
    """Return the distinct lists of subscriptions, and for each member the index of its own.

    Lists that are the same object are not compared, because comparing thousands of topics takes time.
    """
    lists = [member.subscriptions for member in members]
    if lists and all(map(is_, lists, repeat(lists[0]))):
        return lists[:1], [0] * len(lists)
    objects = list(map(id, lists))
    distinct = dict(zip(objects, lists, strict=True))
    places: dict[tuple[str, ...], int] = {}
    found = {key: places.setdefault(names, len(places)) for key, names in distinct.items()}
    return list(places), [found[key] for key in objects]


def subscribers_by_topic(members: Sequence[Participant]) -> dict[str, list[int]]:
    """Return each subscribed topic's subscribers as ascending indexes into ``members``.

    Returns: topics with the same subscribers share one list object.
    """
    subscriptions, places = kinds_of(members)
    if len(subscriptions) == 1:
        everybody = list(range(len(members)))
        return dict.fromkeys(subscriptions[0], everybody)
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
            lists[key] = sorted(chain.from_iterable(map(kinds.__getitem__, key)))
        found[topic] = lists[key]
    return found


def topics_with_queues(problem: Problem, subscribed: Iterable[str]) -> list[Topic]:
    """Return the subscribed topics that have queues, by name; unknown and empty ones are skipped."""
    topics = problem.topics
    return [topics[name] for name in sorted(subscribed) if name in topics and topics[name].queues]


def distinct_queues(refs: Iterable[QueueRef]) -> list[QueueRef]:
    """Return each queue once, in the order of its first occurrence."""
    return list(dict.fromkeys(refs))
