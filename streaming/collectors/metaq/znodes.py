"""Shell: MetaQ's nodes in ZooKeeper: their paths and content. No I/O here.

Source: metamorphosis-client 1.4.6.2 ``MetaZookeeper``, ``ConsumerZooKeeper``, ``ZkOffsetStorage``; before 1.4.3 brokers
wrote only ``brokers/topics``, before 1.4 clients wrote offsets without a message id.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from streaming.collectors.metaq.observed import Violation
from udfs.model.events import MAX_INT32, MAX_INT64, MAX_NAME_LENGTH, MAX_QUEUE_COUNT

_RAW_CHARACTERS = 200  # of an unreadable node, enough to recognize it
_PARTITION = re.compile(r"(\d{1,10})-(\d{1,10})", re.ASCII)
_COUNT = re.compile(r"\s*\+?(\d{1,10})\s*", re.ASCII)
# ``ConsumerZooKeeper#getConsumerUUID`` creates this id if none is configured: address, process, time, counter.
_MADE_ID = re.compile(r"(?P<host>.+)-\d+-\d{13}-\d+")


class UnreadableNode(Exception):  # noqa: N818 - it is the node that is wrong
    """A node's name or data has not MetaQ's format; the message is the reason's name."""


class Paths:
    """The paths below a root."""

    def __init__(self, root: str) -> None:
        self.root = "/" + root.strip("/") if root.strip("/") else ""
        self.consumers = f"{self.root}/consumers"
        self.topics_sub = f"{self.root}/brokers/topics-sub"
        self.topics_pub = f"{self.root}/brokers/topics-pub"
        self.topics_old = f"{self.root}/brokers/topics"

    def ids(self, group: str) -> str:
        """Return the path under which a group's consumers register."""
        return f"{self.consumers}/{group}/ids"

    def owners(self, group: str) -> str:
        """Return the path under which a group's topics with owners are listed."""
        return f"{self.consumers}/{group}/owners"

    def offsets(self, group: str) -> str:
        """Return the path under which a group's topics with offsets are listed."""
        return f"{self.consumers}/{group}/offsets"

    def below(self, path: str) -> str:
        """Return a path without the root."""
        return path.removeprefix(self.root)


class Concern(NamedTuple):
    """The group or topic that a change at some path concerns."""

    kind: str  # groups, group (its members), owners (of a group), topics, topic
    name: str = ""


def concern_of(paths: Paths, path: str) -> Concern | None:
    """Return the group or topic that a change at a path concerns; None for unwatched paths.

    Example:
        >>> concern_of(Paths("/meta"), "/meta/consumers/billing/owners/orders")
        Concern(kind='owners', name='billing')
    """
    if path == paths.consumers or paths.consumers.startswith(f"{path}/"):
        return Concern("groups")
    if path.startswith(f"{paths.consumers}/"):
        group, _, below = path[len(paths.consumers) + 1 :].partition("/")
        return Concern("owners" if below.startswith("owners/") else "group", group)
    for folder in (paths.topics_sub, paths.topics_pub, paths.topics_old):
        if path == folder:
            return Concern("topics")
        if path.startswith(f"{folder}/"):
            return Concern("topic", path[len(folder) + 1 :].partition("/")[0])
    return None


def violation_of(path: str, reason: str, data: bytes) -> Violation:
    """Return the problem of a node as printable text."""
    return Violation(path, reason, data[: 4 * _RAW_CHARACTERS].decode(errors="replace")[:_RAW_CHARACTERS])


def read_name(name: str) -> str:
    """Return a group's, topic's or consumer's name.

    Raises:
        UnreadableNode: The name is too long to be reported.
    """
    if not 0 < len(name) <= MAX_NAME_LENGTH:
        raise UnreadableNode("name_too_long")
    return name


def read_subscriptions(data: bytes) -> tuple[str, ...]:
    """Return the topics in a consumer's node, sorted, each once: ``a,b``.

    Raises:
        UnreadableNode: The data is not UTF-8.
    """
    topics = {topic.strip() for topic in _text(data).split(",")} - {""}
    if any(len(topic) > MAX_NAME_LENGTH for topic in topics):
        raise UnreadableNode("name_too_long")
    return tuple(sorted(topics))


def read_owner(data: bytes) -> str:
    """Return the consumer in a partition's node.

    Raises:
        UnreadableNode: The data names no consumer, or is not UTF-8.
    """
    owner = _text(data)
    if not owner:
        raise UnreadableNode("no_owner_named")
    return read_name(owner)


def read_partition(name: str) -> tuple[str, int]:
    """Return broker and number of a partition's name: ``0-3``.

    Raises:
        UnreadableNode: The name does not have that form.
    """
    match = _PARTITION.fullmatch(name)
    if match is None or int(match[2]) > MAX_INT32:
        raise UnreadableNode("not_a_partition")
    return match[1], int(match[2])


def read_broker(name: str) -> str:
    """Return the broker of a topic's node: ``0-m``, ``0-s1``.

    Raises:
        UnreadableNode: The name does not split in two; ``MetaZookeeper#getPartitionStringsForSubTopics`` skips such
            names.
    """
    parts = [part for part in name.split("-") if part]
    if len(parts) != 2 or not (parts[0].isascii() and parts[0].isdigit()):
        raise UnreadableNode("not_a_broker")
    return parts[0]


class _TopicBroker(msgspec.Struct, rename="camel"):
    num_parts: int = 0
    broker: str | None = None


def read_share(data: bytes, *, old: bool = False) -> int:
    """Return how many partitions a broker's node announces: ``{"broker":"0-m","numParts":12}``, in old versions ``12``.

    Raises:
        UnreadableNode: The data is neither; clients leave such a broker out.
    """
    text = _text(data)
    if old:
        match = _COUNT.fullmatch(text)
        if match is None:
            raise UnreadableNode("not_a_count")
        count = int(match[1])
    else:
        try:
            count = msgspec.json.decode(text.encode(), type=_TopicBroker, strict=False).num_parts
        except (msgspec.DecodeError, RecursionError) as error:  # also for a field of another type
            raise UnreadableNode("not_a_topic_broker") from error
    if count > MAX_QUEUE_COUNT:
        raise UnreadableNode("too_many_partitions")
    return max(0, count)


def read_offset(data: bytes) -> int:
    """Return the offset in a node: ``messageId-offset``, before 1.4 only the offset.

    Raises:
        UnreadableNode: The data is neither.
    """
    text = _text(data).strip()
    message, dash, offset = text.rpartition("-")
    digits = offset if dash and message else text
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19 and int(digits) <= MAX_INT64):
        raise UnreadableNode("not_an_offset")
    return int(digits)


def client_of_member(group: str, member_id: str) -> tuple[str, str | None]:
    """Return a consumer's own id without the group prefix, and its address if the client included it.

    Example:
        >>> client_of_member("billing", "billing_10.0.0.7-4711-1772334720250-1")
        ('10.0.0.7-4711-1772334720250-1', '10.0.0.7')
    """
    client = member_id.removeprefix(f"{group}_") or member_id
    match = _MADE_ID.fullmatch(client)
    return client, match["host"] if match is not None else None


def _text(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise UnreadableNode("not_utf8") from error
    return text
