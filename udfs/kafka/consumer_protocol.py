"""Core: the protocol of Kafka's classic consumers: subscriptions, assignments, user data. No I/O.

Source: kafka-clients 4.1.1 ``ConsumerProtocolSubscription.json``, ``ConsumerProtocolAssignment.json``,
``StickyAssignor``, ``CooperativeStickyAssignor``. None of these formats is flexible; a version above the newest
supported one is read as the newest, and the bytes after it are ignored, as clients do.
"""

from __future__ import annotations

import msgspec

from udfs.kafka.wire_reader import WireError, WireReader
from udfs.model.events import QueueRef

_GENERATION_BYTES = 4
NO_GENERATION = -1  # kafka-clients AbstractStickyAssignor#DEFAULT_GENERATION
STICKY = "sticky"
COOPERATIVE_STICKY = "cooperative-sticky"
# Only kafka-python writes a version before its user data; others have the topic count there.
_KAFKA_PYTHON_VERSION = 1


class ConsumerSubscription(msgspec.Struct, frozen=True, kw_only=True):
    """A member's subscription as it joined.

    Attributes:
        version: As written, even if it is newer than the newest supported one.
        topics: Sorted, distinct.
        owned: Its partitions, in the reported order; None if the format has none.
        owned_generation: The generation of ``owned``; None if not reported.
        rack: As written: None, empty or a name. user_data: As written.
    """

    version: int
    topics: tuple[str, ...]
    owned: tuple[QueueRef, ...] | None = None
    owned_generation: int | None = None
    rack: str | None = None
    user_data: bytes | None = None


def read_subscription(data: bytes, strategy: str | None) -> ConsumerSubscription:
    """Parse a member's subscription.

    Args:
        strategy: The protocol under which it was sent, which determines the meaning of the user data.
    Raises:
        WireError: The bytes are not a subscription.
    """
    reader = WireReader(data)
    version = _version(reader)
    topics = tuple(sorted(set(reader.array(lambda: _topic(reader)))))
    user_data = reader.nullable_data()
    owned = _queues(reader) if version >= 1 else None
    generation = reader.int32() if version >= 2 else NO_GENERATION
    rack = reader.nullable_string() if version >= 3 else None
    owned_generation = generation if generation >= 0 else None
    if strategy == STICKY:
        # The member revokes everything before it joins, so its former queues are only in the user data.
        owned, owned_generation = _sticky_data(user_data)
    elif strategy == COOPERATIVE_STICKY and owned_generation is None and user_data is not None:
        owned_generation = _cooperative_generation(user_data)
    return ConsumerSubscription(
        version=version,
        topics=topics,
        owned=owned,
        owned_generation=owned_generation,
        rack=rack,
        user_data=user_data,
    )


def read_assignment(data: bytes) -> tuple[QueueRef, ...]:
    """Parse a member's assignment, sorted and distinct; no bytes mean no queues.

    Raises:
        WireError: The bytes are not an assignment.
    """
    if not data:
        return ()
    reader = WireReader(data)
    _version(reader)
    return tuple(sorted(_queues(reader)))


def has_version(user_data: bytes) -> bool:
    """Return whether the user data of ``sticky`` begin with kafka-python's version."""
    return len(user_data) > _GENERATION_BYTES and WireReader(user_data).int16() == _KAFKA_PYTHON_VERSION


def assignment_form(data: bytes) -> tuple[int, bytes | None]:
    """Return the version and the user data of an assignment.

    Raises:
        WireError: The bytes are not an assignment.
    """
    reader = WireReader(data)
    version = _version(reader)
    _queues(reader)
    return version, reader.nullable_data()


def _version(reader: WireReader) -> int:
    version = reader.int16()
    if version < 0:
        raise WireError(f"version {version}")
    return version


def _topic(reader: WireReader) -> str:
    topic = reader.string()
    if not topic:
        raise WireError("a topic without a name")
    return topic


def _queues(reader: WireReader) -> tuple[QueueRef, ...]:
    by_topic = reader.array(lambda: (_topic(reader), reader.int32_array()))
    if any(partition < 0 for _, partitions in by_topic for partition in partitions):
        raise WireError("a partition below 0")
    # Distinct, in the reported order.
    return tuple(
        dict.fromkeys(QueueRef(topic, partition) for topic, partitions in by_topic for partition in partitions)
    )


def _sticky_data(user_data: bytes | None) -> tuple[tuple[QueueRef, ...], int | None]:
    """Parse the user data of ``sticky``: version 1 ends with a generation, version 0 does not.

    Source: kafka-clients ``StickyAssignor#deserializeTopicPartitionAssignment``: unreadable data count as nothing;
    kafka-python 3.0 writes an int16 version first.
    """
    if not user_data:
        return (), None
    reader = WireReader(user_data)
    try:
        if has_version(user_data):
            reader.int16()
        owned = _queues(reader)
    except WireError:
        return (), NO_GENERATION
    return owned, max(NO_GENERATION, reader.int32()) if reader.left >= _GENERATION_BYTES else None


def _cooperative_generation(user_data: bytes) -> int | None:
    """Parse the generation.

    Source: kafka-clients ``CooperativeStickyAssignor#memberData``; librdkafka writes the same data as for ``sticky``.
    """
    if len(user_data) > _GENERATION_BYTES:
        return _sticky_data(user_data)[1]
    try:
        return max(NO_GENERATION, WireReader(user_data).int32())
    except WireError:
        return NO_GENERATION
