"""Core: which client libraries may have written a member's subscription and a leader's assignments. No I/O.

No single piece of evidence is certain; together they mostly leave one library:

- The leader writes all assignments. kafka-clients from 2.4 on writes the version of its own protocol, and no user data;
  kafka-python has version 1 for cooperative-sticky; all others write version 0: librdkafka, kafka-python, aiokafka and
  kafka-clients before 2.4 with empty user data, franz-go and sarama with null, librdkafka's cooperative-sticky and
  sarama's sticky with bytes.
- The subscription: its version, null or empty user data, an empty (librdkafka) or null rack.
- The client id, if it is the library's default; bytes that only one other library writes outweigh it.

Source: records of a 4.1 broker with kafka-clients 2.8.2, 3.9.1 and 4.1.1, librdkafka 2.16, kafka-python 3.0.12,
aiokafka 0.14.0, franz-go 1.22.2 and sarama 1.61.1 (``tests/udfs/kafka/test_library_evidence.py``).
"""

from __future__ import annotations

from collections.abc import Sequence

from udfs.kafka.consumer_protocol import COOPERATIVE_STICKY, STICKY, ConsumerSubscription, assignment_form, has_version
from udfs.kafka.wire_reader import WireError

_JAVA = ("java-2.3", "java-2.4+", "java-3.2+", "java-3.4+")  # by the version that they write
_NEWEST = len(_JAVA) - 1
_ALTERNATIVES = "|"
# librdkafka writes version 3 of the subscription since 2.2, and version 1 or 0 before.
_RDKAFKA, _OLD_RDKAFKA = "librdkafka", "librdkafka-2.1"
_KAFKA_PYTHON, _AIOKAFKA = "kafka-python", "aiokafka"
_FRANZ_GO, _SARAMA = "franz-go", "sarama"
_EVERY = (*reversed(_JAVA), _RDKAFKA, _OLD_RDKAFKA, _KAFKA_PYTHON, _AIOKAFKA, _FRANZ_GO, _SARAMA)
# The default client id of each library.
_DEFAULT_CLIENT_IDS = (
    ("rdkafka", (_RDKAFKA, _OLD_RDKAFKA)),
    ("kafka-python-", (_KAFKA_PYTHON,)),
    ("aiokafka-", (_AIOKAFKA,)),
    ("kgo", (_FRANZ_GO,)),
    ("sarama", (_SARAMA,)),
    ("consumer-", _JAVA),
)
_GENERATION_BYTES = 4
_NO_QUEUES = bytes(4)


def libraries_of(
    subscription: ConsumerSubscription | None,
    strategy: str | None,
    client_id: str | None,
    *,
    one_timeout: bool,
    assignments: Sequence[bytes] = (),
) -> tuple[str, ...]:
    """Return the libraries that a member may use, likeliest first.

    Args:
        subscription: None if it cannot be read. one_timeout: Session and rebalance timeout are equal, as is aiokafka's
            default. assignments: Assignments that the member wrote as the leader, which outweigh the rest.
    Returns: names such as ``java-3.4+`` (that or a later one that writes the same), or ``librdkafka-2.1`` (that or an
        earlier one); never none.

    Example:
        >>> libraries_of(ConsumerSubscription(version=1, topics=("t",)), "range", "billing", one_timeout=False)
        ('java-2.4+', 'sarama')
    """
    written = _by_assignments(assignments)
    own = _EVERY if subscription is None else _by_subscription(subscription, strategy, one_timeout=one_timeout)
    possible = tuple(name for name in own if name in written) or written
    for prefix, names in _DEFAULT_CLIENT_IDS:
        if client_id is not None and client_id.startswith(prefix):
            return tuple(name for name in possible if name in names) or possible
    return possible


def text_of(libraries: Sequence[str]) -> str:
    """Return names in the form of the field ``client_library``."""
    return _ALTERNATIVES.join(libraries)


def _by_assignments(assignments: Sequence[bytes]) -> tuple[str, ...]:
    for data in filter(None, assignments):
        try:
            return _by_assignment(*assignment_form(data))
        except WireError:
            continue
    return _EVERY


def _by_assignment(version: int, user_data: bytes | None) -> tuple[str, ...]:
    if version:
        return (_KAFKA_PYTHON,) if user_data == b"" else (_JAVA[min(version, _NEWEST)],)
    if user_data is None:
        return (_FRANZ_GO, _SARAMA)
    if user_data:
        return (_RDKAFKA, _OLD_RDKAFKA, _SARAMA)
    return (_RDKAFKA, _OLD_RDKAFKA, _KAFKA_PYTHON, _AIOKAFKA, _JAVA[0])


def _by_subscription(subscription: ConsumerSubscription, strategy: str | None, *, one_timeout: bool) -> tuple[str, ...]:
    version, data = min(subscription.version, _NEWEST), subscription.user_data
    java = _JAVA[version]
    if version >= 2:
        if subscription.rack == "" or (data == b"" and subscription.rack is not None):
            return (_RDKAFKA,)
        others = (_FRANZ_GO,) if subscription.rack is None or data is None else (_FRANZ_GO, _RDKAFKA)
        if strategy == COOPERATIVE_STICKY and data is not None:
            # kafka-clients writes only the generation.
            return (java,) if len(data) == _GENERATION_BYTES and data != _NO_QUEUES else others
        return (java, *others)
    python = (_AIOKAFKA, _KAFKA_PYTHON) if one_timeout else (_KAFKA_PYTHON, _AIOKAFKA)
    if data is None:
        return (java, _SARAMA) if version else (_SARAMA, _FRANZ_GO)
    if not data:
        if version:
            return (_KAFKA_PYTHON, _OLD_RDKAFKA) if strategy == COOPERATIVE_STICKY else (_OLD_RDKAFKA,)
        return (*python, java, _OLD_RDKAFKA)
    if strategy == STICKY:
        if has_version(data):
            return (_KAFKA_PYTHON,)
        return (java, _SARAMA) if version else (_AIOKAFKA, java, _SARAMA)
    if strategy == COOPERATIVE_STICKY:
        return (java, _SARAMA) if len(data) == _GENERATION_BYTES else (_OLD_RDKAFKA,)
    return (java, *python, _OLD_RDKAFKA, _SARAMA)
