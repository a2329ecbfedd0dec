"""Core: the names of topics that records of the new protocols identify by their ids. No I/O.

Metadata shows the names. A re-created topic has another id, which its groups' records may name before the next poll, or
only between two polls. A target assigns the queues of all topics that its members subscribe to, so if it names exactly
one id without a name and leaves out one of these topics, the id is that topic's.

Metadata never shows some topics: this user may not describe them, or they are Kafka's own. An epoch waits for them for
a while. Then the id gets the name of the only topic left of which metadata shows nothing; otherwise the id is the name.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence

from udfs.group.state.epoch_outcome import EpochOutcome, Held
from udfs.group.state.record_fold import note_names
from udfs.group.state.recorded_group import RecordedGroup
from udfs.group.state.view import GroupView

# How long an epoch waits for its topics' metadata once there is metadata, which is polled every few seconds.
NAMES_WITHIN_MS = 60_000
_HEXADECIMAL_UUID = 36
_FOR_URLS = str.maketrans("+/", "-_")


def learn_names(view: GroupView, recorded: RecordedGroup, at: int) -> dict[str, str]:
    """Remember the ids of topics, as far as they are reported; return the names of topics that had none so far."""
    found: dict[str, str] = {}
    for topic in sorted({*recorded.topics(), *view.group.subscribed_topics()}):
        topic_id = topic_id_at(view, topic, at)
        if topic_id is not None:
            found |= _name(recorded, topic_id, topic)
    for outcome in recorded.waiting:
        id_and_name = _only_one_left(recorded, outcome)
        if id_and_name is not None and (
            id_and_name[1] in recorded.names.values() or _has_waited(view, recorded, *id_and_name, at)
        ):
            found |= _name(recorded, *id_and_name)
    return found


def _name(recorded: RecordedGroup, topic_id: str, topic: str) -> dict[str, str]:
    """Remember a name; return it if the id was used as the name until now."""
    former = recorded.names.get(topic_id)
    note_names(recorded, {topic_id: topic})
    return {topic_id: topic} if former == topic_id != topic else {}


def is_overdue(recorded: RecordedGroup, outcome: EpochOutcome, at: int) -> bool:
    """Return whether an outcome has waited long enough although metadata has arrived.

    A group's records may be older than the first metadata, which holds for all earlier times.
    """
    since = recorded.metadata_since
    return since is not None and at >= max(since, outcome.at) + NAMES_WITHIN_MS


def next_check(recorded: RecordedGroup, outcomes: Sequence[EpochOutcome], at: int) -> int | None:
    """Return when waiting outcomes are checked again without new events: when the oldest is overdue.

    Without any metadata of the cluster the wait grows by a quarter each time, so that years of waiting cost few checks.
    """
    if not outcomes:
        return None
    since, wait = outcomes[0].at, NAMES_WITHIN_MS
    if recorded.metadata_since is not None:
        overdue_at = max(recorded.metadata_since, since) + wait
        return overdue_at if overdue_at > at else None
    while since + wait <= at:
        wait += max(NAMES_WITHIN_MS, wait // 4)
    return since + wait


def name_the_rest(view: GroupView, recorded: RecordedGroup, outcome: EpochOutcome, at: int) -> None:
    """Name the topics of an outcome that metadata does not show."""
    note_names(recorded, {topic_id: topic_id for topic_id in sorted(outcome.topic_ids() - recorded.names.keys())})
    found = _only_one_left(recorded, outcome)
    if found is not None and _has_waited(view, recorded, *found, at):
        note_names(recorded, dict([found]))


def _has_waited(view: GroupView, recorded: RecordedGroup, topic_id: str, topic: str, at: int) -> bool:
    """Return whether an epoch has waited in vain for metadata of a topic and for the name of an id."""
    return recorded.names.get(topic_id) == topic_id and view.queues_at(topic, at) is None


def topics_without_metadata(view: GroupView, recorded: RecordedGroup, outcome: EpochOutcome, at: int) -> set[str]:
    """Return the topics of an outcome's target, by name, of which metadata has shown nothing by a given time."""
    names = {recorded.names.get(topic_id, topic_id) for topic_id in _ids(outcome.target or {})}
    return {topic for topic in names if view.queues_at(topic, at) is None}


def topic_id_at(view: GroupView, topic: str, at: int) -> str | None:
    """Return a topic's id in the form used in records, if metadata has shown it by then.

    librdkafka writes ids in the standard base64 alphabet, Java in the URL-safe one; others write hexadecimal ids.
    """
    text = None if view.queues_at(topic, at) is None else view.topics.topic_id(topic, at)
    if text is not None and len(text) == _HEXADECIMAL_UUID:
        try:
            text = base64.b64encode(bytes.fromhex(text.replace("-", ""))).decode()
        except ValueError:
            return text
    return None if text is None else text.rstrip("=").translate(_FOR_URLS)


def has_names(view: GroupView, recorded: RecordedGroup, outcome: EpochOutcome, at: int) -> bool:
    """Return whether the names of an outcome's topics are known, or no topic is left that they could belong to.

    A topic that its target leaves out was deleted or re-created; older metadata has yet to show that.
    """
    if outcome.topic_ids() <= recorded.names.keys():
        return True
    topics = _subscribed(outcome)
    if not topics or not all(_is_described(view, topic, at) for topic in topics):
        return False
    unnamed, left = _left(recorded, outcome)
    return not unnamed or not any(_is_older(view, topic, outcome.at, at) for topic in left)


def ids_by_name(target: Held | None, names: Mapping[str, str]) -> dict[str, str]:
    """Return the ids of the topics that a target names, by name."""
    return {names.get(topic_id, topic_id): topic_id for topic_id in sorted(_ids(target or {}))}


def _is_described(view: GroupView, topic: str, at: int) -> bool:
    queues = view.queues_at(topic, at)
    return queues is not None and (not queues or topic_id_at(view, topic, at) is not None)


def _is_older(view: GroupView, topic: str, time_ms: int, at: int) -> bool:
    """Return whether current metadata shows the state of a topic before a given time."""
    changed_at = view.topics.renewed_at(topic, at)
    return view.topics.at(topic, time_ms) is not None and (changed_at is None or changed_at <= time_ms)


def _only_one_left(recorded: RecordedGroup, outcome: EpochOutcome) -> tuple[str, str] | None:
    """Return the id without a name and the topic that it must belong to, if there is exactly one of each."""
    unnamed, left = _left(recorded, outcome)
    if len(unnamed) != 1 or len(left) != 1:
        return None
    return unnamed.pop(), left.pop()


def _left(recorded: RecordedGroup, outcome: EpochOutcome) -> tuple[set[str], set[str]]:
    """Return the ids in a target that have no name, and the topics without an id in it."""
    if outcome.target is None or not outcome.described:
        return set(), set()
    ids = _ids(outcome.target)
    unnamed = {topic_id for topic_id in ids if recorded.names.get(topic_id, topic_id) == topic_id}
    return unnamed, _subscribed(outcome) - {recorded.names[topic_id] for topic_id in ids - unnamed}


def _subscribed(outcome: EpochOutcome) -> set[str]:
    return {topic for info in outcome.members for topic in info.subscriptions or ()}


def _ids(held: Held) -> set[str]:
    return {topic_partitions.topic for partitions in held.values() for topic_partitions in partitions}
