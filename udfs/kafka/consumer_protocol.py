"""Core: the protocol of Kafka's classic consumers: subscriptions, assignments, user data. No I/O.

Source: kafka-clients 4.1.1 ``ConsumerProtocolSubscription.json``, ``ConsumerProtocolAssignment.json``,
``StickyAssignor``, ``CooperativeStickyAssignor``. None of these formats is flexible; a version above the newest one
is read as the newest one, and what follows it is ignored, as clients do.
"""

from __future__ import annotations

import msgspec

from udfs.kafka.wire import WireError, WireReader
from udfs.model.events import QueueRef

_GENERATION_BYTES = 4
NO_GENERATION = -1  # kafka-clients AbstractStickyAssignor#DEFAULT_GENERATION
STICKY = "sticky"
COOPERATIVE_STICKY = "cooperative-sticky"

# The client id that each library takes when the user names none.
_DEFAULT_CLIENT_IDS = (("rdkafka", "librdkafka"), ("kafka-python", "kafka-python"), ("aiokafka", "aiokafka"))
# The oldest kafka-clients that the version of the subscription proves; 3.4 and 3.5 both write version 3.
_JAVA_BY_VERSION = ("java-2.3", "java-2.4", "java-3.2", "java-3.5")
_JAVA_DEFAULT_CLIENT_ID = "consumer-"


class Subscription(msgspec.Struct, frozen=True, kw_only=True):
    """What a member reported when it joined.

    Attributes:
        version: As written, even if it is newer than the newest supported one.
        topics: Sorted, distinct.
        owned: Its partitions, in the reported order; None where the format has none.
        owned_generation: The generation of ``owned``; None where it is not reported.
    """

    version: int
    topics: tuple[str, ...]
    owned: tuple[QueueRef, ...] | None = None
    owned_generation: int | None = None
    rack: str | None = None


def read_subscription(data: bytes, strategy: str | None) -> Subscription:
    """Read a member's subscription.

    Args:
        strategy: The protocol under which it was sent: it decides what the user data mean.
    Raises:
        WireError: It is none.
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
        # It revokes everything before it joins: its former queues are in the user data only.
        owned, owned_generation = _sticky_data(user_data)
    elif strategy == COOPERATIVE_STICKY and owned_generation is None and user_data is not None:
        owned_generation = _cooperative_generation(user_data)
    return Subscription(version=version, topics=topics, owned=owned, owned_generation=owned_generation, rack=rack)


def read_assignment(data: bytes) -> tuple[QueueRef, ...]:
    """Read the assignment of a member, sorted and distinct; no bytes are no queues.

    Raises:
        WireError: It is no assignment.
    """
    if not data:
        return ()
    reader = WireReader(data)
    _version(reader)
    return tuple(sorted(_queues(reader)))


def guess_library(client_id: str | None, subscription_version: int) -> str | None:
    """Guess a member's client library from the client id and from the version of the subscription that it writes.

    Returns: ``java-2.4`` means kafka-clients 2.4 or a later one that writes the same; None = today's.

    Example:
        >>> guess_library("rdkafka", 1), guess_library("consumer-billing-1", 0), guess_library("billing", 3)
        ('librdkafka', 'java-2.3', None)
    """
    for prefix, library in _DEFAULT_CLIENT_IDS:
        if client_id is not None and client_id.startswith(prefix):
            return library
    newest = len(_JAVA_BY_VERSION) - 1
    if subscription_version < newest or (client_id or "").startswith(_JAVA_DEFAULT_CLIENT_ID):
        return _JAVA_BY_VERSION[min(subscription_version, newest)]
    return None


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
    """Read ``sticky``'s user data: version 1 ends with a generation, version 0 does not.

    Source: kafka-clients ``StickyAssignor#deserializeTopicPartitionAssignment``: what cannot be read counts as nothing.
    """
    if not user_data:
        return (), None
    reader = WireReader(user_data)
    try:
        owned = _queues(reader)
    except WireError:
        return (), NO_GENERATION
    return owned, max(NO_GENERATION, reader.int32()) if reader.left >= _GENERATION_BYTES else None


def _cooperative_generation(user_data: bytes) -> int:
    """Source: kafka-clients ``CooperativeStickyAssignor#memberData``."""
    try:
        return max(NO_GENERATION, WireReader(user_data).int32())
    except WireError:
        return NO_GENERATION
