"""Shell: metadata of a running Kafka cluster: topics, end offsets of its group records, times of single records."""

from __future__ import annotations

import bisect
import contextlib
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, wait
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from streaming.collectors.kafka.message_search import DatedMessage
from streaming.collectors.kafka.options import KafkaOptions
from streaming.collectors.kafka.topic_diff import ObservedTopic
from streaming.machine.logs import LIBRDKAFKA
from udfs.kafka.consumer_offsets import OFFSETS_TOPIC
from udfs.model.first_few import first_few

if TYPE_CHECKING:
    from confluent_kafka.admin import ListOffsetsResultInfo, TopicDescription

# Spark's consumers name their groups like this, so one permission for this prefix covers all of the monitor.
GROUP_PREFIX = "spark-kafka-source"
# A reachable cluster that refuses access answers with these.
REFUSALS = frozenset(
    {
        KafkaError._AUTHENTICATION,
        KafkaError._SSL,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
    }
)
_UNDER_WAY = {
    ConsumerGroupState.PREPARING_REBALANCING: "PreparingRebalance",
    ConsumerGroupState.COMPLETING_REBALANCING: "CompletingRebalance",
}
_NOBODYS_GROUP = "rebalance-monitor.rights-check"
_ENDS_TIMEOUT_S = 2.0
_TIMEOUT_S = 10.0
_COMPLAINTS_AT_ONCE = 10
_IDS_AT_ONCE = 1_000  # topics whose ids are read in one round, which takes one request and some ms of CPU
_COMPLAINTS_KEPT = 100
_NO_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAA"  # sixteen zeroes: the broker has no topic ids (before 2.8)
_LEADERLESS_NAMED = 5
# The client ends a request at its timeout and gives the reason, so that is awaited.
_LONGER_S = 5.0
AnswerT = TypeVar("AnswerT")


class MetadataClient:
    """A connection to one cluster. It only reads, joins no group and creates no topic.

    Every call raises ``confluent_kafka.KafkaException`` if the cluster cannot be reached or refuses access; the client
    itself reconnects.
    """

    def __init__(self, options: KafkaOptions, *, timeout_s: float = _TIMEOUT_S) -> None:
        self._leaderless: list[str] = []
        self._timeout_s = timeout_s
        self._last_described = ""
        self._lists_states = True
        self._complaints: deque[KafkaError] = deque(maxlen=_COMPLAINTS_KEPT)
        properties = options.librdkafka()
        self._admin = AdminClient({**properties}, error_cb=self._complain, logger=LIBRDKAFKA)
        self._consumer = Consumer(
            {
                **properties,
                "error_cb": self._complain,
                "logger": LIBRDKAFKA,
                "group.id": f"{GROUP_PREFIX}-collector",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "allow.auto.create.topics": False,
                "auto.offset.reset": "earliest",
                # Reads are uncommitted: an offset counts once its coordinator has written it.
                "isolation.level": "read_uncommitted",
                # It never needs more than one record at a time.
                "fetch.wait.max.ms": 50,
            }
        )

    def __enter__(self) -> MetadataClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()

    def groups_under_way(self) -> dict[str, str]:
        """Return the state of each classic group that this user may describe and that is rebalancing.

        Brokers before 2.6 cannot list groups by state; nothing is returned for them.
        """
        if not self._lists_states:
            return {}
        try:
            request = self._admin.list_consumer_groups(states=set(_UNDER_WAY), request_timeout=self._timeout_s)
            answer = answer_of(request, self._timeout_s)
        except KafkaException as error:
            if error.args[0].code() != KafkaError._UNSUPPORTED_FEATURE:
                raise
            self._lists_states = False
            return {}
        # The documented "exceptions" are KafkaErrors, one for each broker that did not answer.
        if any(error.code() == KafkaError._UNSUPPORTED_FEATURE for error in answer.errors):
            self._lists_states = False
        return {group.group_id: _UNDER_WAY[group.state] for group in answer.valid if group.state in _UNDER_WAY}

    def new_protocol_groups(self) -> list[str]:
        """Return the consumer groups of the new protocol; none if brokers do not list groups by kind."""
        try:
            request = self._admin.list_consumer_groups(
                types={ConsumerGroupType.CONSUMER}, request_timeout=self._timeout_s
            )
            return [group.group_id for group in answer_of(request, self._timeout_s).valid]
        except KafkaException as error:
            if error.args[0].code() != KafkaError._UNSUPPORTED_FEATURE:
                raise
            return []

    def coordinators(self) -> list[tuple[str, int] | None]:
        """Return host and port of the leader of each partition of ``__consumer_offsets``; None if it has no leader."""
        metadata = self._consumer.list_topics(OFFSETS_TOPIC, timeout=self._timeout_s)
        partitions = metadata.topics[OFFSETS_TOPIC].partitions
        leaders = [metadata.brokers.get(partitions[number].leader) for number in sorted(partitions)]
        return [None if leader is None else (leader.host, leader.port) for leader in leaders]

    def topics(self, previous: Mapping[str, ObservedTopic] | None = None) -> dict[str, ObservedTopic | None]:
        """Return all topics that this user may describe, with None for topics that cannot be described just now.

        Args:
            previous: The previous result; ids of unchanged topics are copied from it, except for some in turn, because
                a re-created topic has another id.
        """
        metadata = self._admin.list_topics(timeout=self._timeout_s)
        racks = self._racks()
        observed: dict[str, ObservedTopic | None] = {}
        to_describe: list[str] = []
        self._leaderless = []
        for name, topic in metadata.topics.items():
            if topic.error is not None or not topic.partitions:
                observed[name] = None
                continue
            partitions = [topic.partitions[number] for number in sorted(topic.partitions)]
            self._leaderless += [f"{name}-{partition.id}" for partition in partitions if partition.leader < 0]
            of_partitions = tuple(
                tuple(sorted({racks[replica] for replica in partition.replicas if replica in racks}))
                for partition in partitions
            )
            before = (previous or {}).get(name)
            now = ObservedTopic(len(partitions), of_partitions if any(of_partitions) else ())
            if before is not None and (before.partitions, before.racks) == (now.partitions, now.racks):
                now = before
            else:
                to_describe.append(name)
            observed[name] = now
        to_describe += self._few_topics(sorted(name for name, topic in observed.items() if topic is not None))
        for name, topic_id in self._topic_ids(sorted(set(to_describe))).items():
            found = observed[name]
            if found is not None:
                observed[name] = ObservedTopic(found.partitions, found.racks, topic_id)
        return observed

    @property
    def partial(self) -> str | None:
        """Return the partitions without a leader when topics were described last; None if all had one."""
        if not self._leaderless:
            return None
        return f"partitions without a leader: {first_few(self._leaderless, _LEADERLESS_NAMED)}"

    def _few_topics(self, names: list[str]) -> list[str]:
        chosen = next_few(names, self._last_described, _IDS_AT_ONCE)
        self._last_described = chosen[-1] if chosen else ""
        return chosen

    def offsets_partitions(self, topic: str = OFFSETS_TOPIC) -> int:
        """Return the number of a topic's partitions; 0 if it does not exist, as ``__consumer_offsets`` at first."""
        described = self._consumer.list_topics(topic, timeout=self._timeout_s).topics[topic]
        if described.error is not None and described.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return 0
        if described.error is not None:
            raise KafkaException(described.error)
        return len(described.partitions)

    def topic_error(self, topic: str) -> KafkaError | None:
        """Return the cluster's error on describing a topic; a missing topic is not created."""
        error: KafkaError | None = self._consumer.list_topics(topic, timeout=self._timeout_s).topics[topic].error
        return error

    def locate_coordinator(self) -> None:
        """Request the coordinator of a group, for which the broker creates ``__consumer_offsets`` if it is missing."""
        self._consumer.committed([TopicPartition(OFFSETS_TOPIC, 0)], timeout=self._timeout_s)

    def offsets_bounds(self, partitions: int, topic: str = OFFSETS_TOPIC) -> dict[int, tuple[int, int]]:
        """Return the first and the end offset of each partition of a topic.

        The end offset includes what running transactions have written.
        """
        # Both are requested at once, so that an unavailable leader is waited for only once.
        first = self._request_offsets(topic, partitions, OffsetSpec.earliest())
        last = self._request_offsets(topic, partitions, OffsetSpec.latest())
        return {
            number: (answer_of(first[number], self._timeout_s).offset, answer_of(end, self._timeout_s).offset)
            for number, end in last.items()
        }

    def ends(self, partitions: Mapping[str, int]) -> dict[tuple[str, int], int]:
        """Return the end offsets, without partitions that have no leader, as on a broker that is away."""
        return self._bounds(partitions, OffsetSpec.latest())

    def starts(self, partitions: Mapping[str, int]) -> dict[tuple[str, int], int]:
        """Return the earliest offsets, without partitions that have no leader."""
        return self._bounds(partitions, OffsetSpec.earliest())

    def first_since(self, times: Mapping[tuple[str, int], int]) -> dict[tuple[str, int], DatedMessage | None]:
        """Return of each partition that has a leader the first message that is not older than a time, or None."""
        found = self._offsets_of({place: OffsetSpec.for_timestamp(time_ms) for place, time_ms in times.items()})
        return {
            place: None if answer.offset < 0 or answer.timestamp < 0 else DatedMessage(answer.offset, answer.timestamp)
            for place, answer in found.items()
        }

    def consumer_groups(self) -> list[str]:
        """Return the names of all consumer groups; none if no broker lists them."""
        with contextlib.suppress(KafkaException):
            request = self._admin.list_consumer_groups(request_timeout=_ENDS_TIMEOUT_S)
            return sorted(group.group_id for group in answer_of(request, _ENDS_TIMEOUT_S).valid)
        return []

    def committed(self, groups: Sequence[str]) -> dict[str, dict[tuple[str, int], int]]:
        """Return the committed offsets of each group that this user may describe; -1 where there is none."""
        answers: dict[str, Future[ConsumerGroupTopicPartitions]] = {}
        for name in groups:  # the client takes one group at a time
            wanted = [ConsumerGroupTopicPartitions(name)]
            answers |= self._admin.list_consumer_group_offsets(wanted, request_timeout=_ENDS_TIMEOUT_S)
        wait(answers.values(), _ENDS_TIMEOUT_S + _LONGER_S)
        found: dict[str, dict[tuple[str, int], int]] = {}
        for name, answer in answers.items():
            if answer.done() and answer.exception() is None:
                places = answer.result().topic_partitions or ()
                found[name] = {(place.topic, place.partition): place.offset for place in places if place.error is None}
        return found

    def _bounds(self, partitions: Mapping[str, int], spec: OffsetSpec) -> dict[tuple[str, int], int]:
        places = {(topic, number): spec for topic in partitions for number in range(partitions[topic])}
        return {place: answer.offset for place, answer in self._offsets_of(places).items()}

    def _offsets_of(self, specs: Mapping[tuple[str, int], OffsetSpec]) -> dict[tuple[str, int], ListOffsetsResultInfo]:
        found: dict[tuple[str, int], ListOffsetsResultInfo] = {}
        if specs:
            places = {TopicPartition(*place): spec for place, spec in specs.items()}
            answers = self._admin.list_offsets(places, request_timeout=_ENDS_TIMEOUT_S)
            # All are requested together; otherwise each partition of an unavailable broker is waited for in turn.
            answered, _ = wait(answers.values(), _ENDS_TIMEOUT_S)
            for place, answer in answers.items():
                # The rest of a poll must not depend on one partition.
                if answer in answered:
                    with contextlib.suppress(KafkaException):
                        found[place.topic, place.partition] = answer.result()
        return found

    def record_time(self, partition: int, offset: int, topic: str = OFFSETS_TOPIC) -> int | None:
        """Return the timestamp of the first record of a partition at or after an offset, if there is one."""
        self._consumer.assign([TopicPartition(topic, partition, offset)])
        try:
            message = self._consumer.poll(self._timeout_s)
            if message is None or message.error() is not None:
                return None
            kind, time_ms = message.timestamp()
            return None if kind == TIMESTAMP_NOT_AVAILABLE else int(time_ms)
        finally:
            self._consumer.unassign()

    def may_read(self) -> KafkaError | None:
        """Try to read ``__consumer_offsets``; return the error, if there is one."""
        self._consumer.assign([TopicPartition(OFFSETS_TOPIC, 0, 0)])
        deadline = time.monotonic() + self._timeout_s
        try:
            while time.monotonic() < deadline:
                message = self._consumer.poll(0.2)
                if message is None:
                    continue
                error = message.error()
                if error is None or error.code() == KafkaError._PARTITION_EOF:
                    return None
                # The client also requests the group's coordinator; that permission is checked separately.
                if error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:
                    return error
            return KafkaError(KafkaError._TIMED_OUT)
        finally:
            self._consumer.unassign()

    def may_use_group(self) -> KafkaError | None:
        """Request the group of the monitor's own reader; return the error, if there is one."""
        try:
            self.locate_coordinator()
        except KafkaException as error:
            # The client retries until its timeout, and reports the reason only in its log.
            refusal = (
                complaint
                for complaint in self.complaints()
                if complaint.code() == KafkaError.GROUP_AUTHORIZATION_FAILED
            )
            found: KafkaError = error.args[0]
            return next(refusal, found)
        return None

    def may_describe_groups(self) -> bool:
        """Try to describe a group that does not exist; return whether this user may describe any group."""
        (answer,) = self._admin.describe_consumer_groups([_NOBODYS_GROUP], request_timeout=self._timeout_s).values()
        try:
            answer_of(answer, self._timeout_s)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                return False
            if error.args[0].code() != KafkaError.GROUP_ID_NOT_FOUND:
                raise
        return True

    def complaints(self) -> list[KafkaError]:
        """Return the errors logged by the clients, newest last."""
        self._admin.poll(0)
        messages = self._consumer.consume(_COMPLAINTS_AT_ONCE, 0.1)
        self._complaints += [error for message in messages if (error := message.error()) is not None]
        return list(self._complaints)

    def _request_offsets(
        self, topic: str, partitions: int, spec: OffsetSpec
    ) -> dict[int, Future[ListOffsetsResultInfo]]:
        queried = {TopicPartition(topic, number): spec for number in range(partitions)}
        answers = self._admin.list_offsets(queried, request_timeout=self._timeout_s)
        return {place.partition: answer for place, answer in answers.items()}

    def _racks(self) -> dict[int, str]:
        cluster = answer_of(self._admin.describe_cluster(request_timeout=self._timeout_s), self._timeout_s)
        return {node.id: node.rack for node in cluster.nodes if node.rack}

    def _topic_ids(self, topics: list[str]) -> dict[str, str | None]:
        if not topics:
            return {}
        answers = self._admin.describe_topics(TopicCollection(topics), request_timeout=self._timeout_s)
        found: dict[str, str | None] = {}
        for name, answer in answers.items():
            try:
                described: TopicDescription = answer_of(answer, self._timeout_s)
            except KafkaException:
                continue  # deleted just now
            topic_id = str(described.topic_id)
            found[name] = None if topic_id == _NO_TOPIC_ID else topic_id
        return found

    def _complain(self, error: KafkaError) -> None:
        self._complaints.append(error)


def next_few(names: list[str], after: str, most: int) -> list[str]:
    """Return the next of many sorted names, starting over after the last; all if there are few.

    Example:
        >>> next_few(["a", "b", "c"], "a", 1), next_few(["a", "b", "c"], "c", 2)
        (['b'], ['a', 'b'])
    """
    at = bisect.bisect_right(names, after) if len(names) > most else 0
    return names[at : at + most] or names[:most]


def answer_of(request: Future[AnswerT], timeout_s: float) -> AnswerT:
    """Wait for the answer of an admin request that was given a timeout.

    Raises:
        KafkaException: The cluster cannot be reached, or refuses access.
    """
    try:
        return request.result(timeout_s + _LONGER_S)
    except TimeoutError:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from None
