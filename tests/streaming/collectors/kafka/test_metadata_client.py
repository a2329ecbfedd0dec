"""The state of a running cluster as its clients report it; the test plays both clients."""

from __future__ import annotations

from concurrent.futures import Future, wait
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_NOT_AVAILABLE, KafkaError, KafkaException

from streaming.collectors.kafka import metadata_client
from streaming.collectors.kafka.metadata_client import OFFSETS_TOPIC, MetadataClient, answer_of, next_few
from streaming.collectors.kafka.options import KafkaOptions
from streaming.collectors.kafka.topic_diff import ObservedTopic

NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
NONE_LEFT = SimpleNamespace(error=lambda: KafkaError(KafkaError._PARTITION_EOF))


def done(value: object) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


def topic(*replicas: list[int], error: KafkaError | None = None, led: set[int] | None = None) -> SimpleNamespace:
    """Return a topic as librdkafka describes it; ``led``: the partitions that have a leader; None: all."""
    partitions = {
        number: SimpleNamespace(id=number, replicas=brokers, leader=brokers[0] if led is None or number in led else -1)
        for number, brokers in enumerate(replicas)
    }
    return SimpleNamespace(error=error, partitions=partitions)


class Cluster:
    """Both clients of a cluster: of its administrator and of its readers."""

    def __init__(self) -> None:
        self.topics: dict[str, SimpleNamespace] = {}
        self.racks: dict[int, str | None] = {}
        self.ids: dict[str, str] = {}
        self.described: list[str] = []
        self.messages: list[Any] = []
        self.complaints: list[KafkaError] = []
        self.refusal: KafkaError | None = None
        self.assigned: list[tuple[str, int, int]] = []
        self.led: set[int] = set()  # partitions whose leader answers
        self.refused: set[int] = set()

    def list_topics(self, _name: str | None = None, *, timeout: float) -> SimpleNamespace:
        assert timeout > 0
        return SimpleNamespace(topics=self.topics)

    def list_offsets(self, places: Any, **_: object) -> dict[Any, Future[Any]]:
        """Return offsets of partitions whose leader is there, and refuse some."""
        found: dict[Any, Future[Any]] = {place: Future() for place in places}
        for place, answer in found.items():
            if place.partition in self.led:
                answer.set_result(SimpleNamespace(offset=-1 if place.topic == "empty" else 7, timestamp=900))
            elif place.partition in self.refused:
                answer.set_exception(KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE)))
        return found

    def list_consumer_group_offsets(self, wanted: Any, **_: object) -> dict[str, Future[Any]]:
        (group,) = wanted
        places = [SimpleNamespace(topic="t", partition=at, offset=5 * at, error=at == 2 or None) for at in range(3)]
        answer = done(SimpleNamespace(topic_partitions=places))
        if group.group_id == "refused":
            answer = Future()
            answer.set_exception(KafkaException(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED)))
        return {group.group_id: answer}

    def describe_cluster(self, **_: object) -> Future[Any]:
        return done(SimpleNamespace(nodes=[SimpleNamespace(id=node, rack=rack) for node, rack in self.racks.items()]))

    def describe_topics(self, wanted: Any, **_: object) -> dict[str, Future[Any]]:
        names = list(wanted.topic_names)
        self.described += names
        futures: dict[str, Future[Any]] = {}
        for name in names:
            futures[name] = Future()
            if name in self.ids:
                futures[name].set_result(SimpleNamespace(topic_id=self.ids[name]))
            else:
                futures[name].set_exception(KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)))
        return futures

    def committed(self, *_: object, **__: object) -> None:
        if self.refusal is not None:
            raise KafkaException(self.refusal)

    def assign(self, places: list[Any]) -> None:
        self.assigned += [(place.topic, place.partition, place.offset) for place in places]

    def unassign(self) -> None:
        self.assigned.clear()

    def poll(self, _timeout: float) -> Any:
        return self.messages.pop(0) if self.messages else None

    def consume(self, count: int, _timeout: float) -> list[Any]:
        found, self.complaints = self.complaints[:count], self.complaints[count:]
        return [SimpleNamespace(error=lambda error=error: error) for error in found]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    played = Cluster()
    for client in ("AdminClient", "Consumer"):
        monkeypatch.setattr(metadata_client, client, lambda *_, **__: played)
    return played


@pytest.fixture
def view(cluster: Cluster) -> MetadataClient:
    return MetadataClient(KafkaOptions("h:1", "c"), timeout_s=0.05)


def test_topics_have_their_racks_and_ids(cluster: Cluster, view: MetadataClient) -> None:
    cluster.racks = {1: "r1", 2: "r2", 3: None}
    cluster.topics = {"a": topic([2, 1], [3]), "b": topic([3])}
    cluster.ids = {"a": "id-of-a", "b": NO_ID}
    assert view.topics() == {"a": ObservedTopic(2, (("r1", "r2"), ()), "id-of-a"), "b": ObservedTopic(1)}


def test_partitions_without_a_leader_are_named(cluster: Cluster, view: MetadataClient) -> None:
    cluster.topics = {"a": topic([1], [1]), "b": topic([2])}
    view.topics()
    assert view.partial is None
    cluster.topics = {"a": topic([1], [1], led={0}), "b": topic(*[[2]] * 7, led=set())}
    view.topics()
    assert view.partial == "partitions without a leader: a-1, b-0, b-1, b-2, b-3 and 3 more"
    cluster.topics["b"] = topic([2])
    view.topics()
    assert view.partial == "partitions without a leader: a-1"


def test_beyond_a_few_topics_ids_are_requested_only_of_topics_that_changed(
    cluster: Cluster, view: MetadataClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata_client, "_IDS_AT_ONCE", 0)
    cluster.topics, cluster.ids = {"a": topic([1]), "b": topic([1])}, {"a": "first", "b": "other"}
    topics = view.topics()
    cluster.described.clear()
    cluster.topics["b"], cluster.ids = topic([1], [1]), {"a": "made anew", "b": "other"}
    assert view.topics(topics) == {"a": ObservedTopic(1, topic_id="first"), "b": ObservedTopic(2, topic_id="other")}
    assert cluster.described == ["b"]


def test_a_topic_that_cannot_be_described_now_is_not_taken_for_absent(cluster: Cluster, view: MetadataClient) -> None:
    cluster.topics = {
        "no leader": topic([1], error=KafkaError(KafkaError.LEADER_NOT_AVAILABLE)),
        "just made": topic(),
        "just deleted": topic([1]),
    }
    assert view.topics() == {"no leader": None, "just made": None, "just deleted": ObservedTopic(1)}


def test_partitions_without_an_answer_are_missing_and_waited_for_together(
    cluster: Cluster, view: MetadataClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata_client, "_ENDS_TIMEOUT_S", 0.05)
    waits = mock.Mock(wraps=wait)
    monkeypatch.setattr(metadata_client, "wait", waits)
    cluster.led, cluster.refused = {1}, {2}
    assert view.ends({"t": 9}) == {("t", 1): 7}
    assert waits.call_count == 1


def test_the_first_message_since_a_time_is_read_of_partitions_with_a_leader(
    cluster: Cluster, view: MetadataClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata_client, "_ENDS_TIMEOUT_S", 0.05)
    cluster.led = {1}
    asked = {("t", 1): 800, ("empty", 1): 800, ("t", 3): 800}
    assert view.first_since(asked) == {("t", 1): (7, 900), ("empty", 1): None}
    assert view.first_since({}) == {}


def test_commits_are_read_of_groups_that_may_be_described(cluster: Cluster, view: MetadataClient) -> None:
    assert view.committed(["a", "refused"]) == {"a": {("t", 0): 0, ("t", 1): 5}}


def test_without_groups_there_is_no_topic_of_offsets_and_other_errors_are_raised(
    cluster: Cluster, view: MetadataClient
) -> None:
    cluster.topics = {OFFSETS_TOPIC: topic(error=KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))}
    assert view.offsets_partitions() == 0
    cluster.topics = {OFFSETS_TOPIC: topic([1], [1])}
    assert view.offsets_partitions() == 2
    cluster.topics = {OFFSETS_TOPIC: topic(error=KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))}
    with pytest.raises(KafkaException):
        view.offsets_partitions()


@pytest.mark.parametrize(
    ("message", "time_ms"),
    [
        (None, None),
        (NONE_LEFT, None),
        (SimpleNamespace(error=lambda: None, timestamp=lambda: (TIMESTAMP_CREATE_TIME, 7)), 7),
        (SimpleNamespace(error=lambda: None, timestamp=lambda: (TIMESTAMP_NOT_AVAILABLE, -1)), None),
    ],
)
def test_a_record_has_its_time_where_it_has_one(
    message: Any, time_ms: int | None, cluster: Cluster, view: MetadataClient
) -> None:
    cluster.messages = [message]
    assert view.record_time(3, 11) == time_ms
    assert cluster.assigned == []


def test_the_group_of_the_reader_is_another_right_than_that_of_the_topic(
    cluster: Cluster, view: MetadataClient
) -> None:
    of_group, of_topic = (
        SimpleNamespace(error=lambda code=code: KafkaError(code))
        for code in (KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED)
    )
    cluster.messages = [None, of_group, NONE_LEFT]
    assert view.may_read() is None
    cluster.messages = [of_group, of_topic]
    error = view.may_read()
    assert error is not None
    assert error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    error = view.may_read()
    assert error is not None
    assert error.code() == KafkaError._TIMED_OUT


def test_a_refused_group_is_found_behind_the_clients_timeout(cluster: Cluster, view: MetadataClient) -> None:
    assert view.may_use_group() is None
    cluster.refusal = KafkaError(KafkaError._TIMED_OUT)
    error = view.may_use_group()
    assert error is not None
    assert error.code() == KafkaError._TIMED_OUT
    cluster.complaints = [KafkaError(KafkaError._TRANSPORT), KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED)]
    error = view.may_use_group()
    assert error is not None
    assert error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED


def test_only_the_newest_complaints_are_kept(cluster: Cluster, view: MetadataClient) -> None:
    for number in range(300):
        view._complain(KafkaError(KafkaError._TRANSPORT, str(number)))
    assert [error.str() for error in view.complaints()] == [str(number) for number in range(200, 300)]


def test_each_round_describes_some_of_many_topics_but_all_of_a_few() -> None:
    names, after, described = [f"t{number}" for number in range(5)], "", []
    for _ in range(4):
        described.append(next_few(names, after, 2))
        after = described[-1][-1]
    assert described == [["t0", "t1"], ["t2", "t3"], ["t4"], ["t0", "t1"]]
    assert next_few(names, "t3", 5) == names


def test_an_answer_and_a_refusal_are_passed_on() -> None:
    answered: Future[int] = Future()
    answered.set_result(7)
    assert answer_of(answered, 1.0) == 7
    refused: Future[int] = Future()
    refused.set_exception(KafkaException(KafkaError(KafkaError._TRANSPORT)))
    with pytest.raises(KafkaException, match="_TRANSPORT"):
        answer_of(refused, 1.0)


def test_a_missing_answer_is_an_error_of_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_client, "_LONGER_S", 0.0)
    with pytest.raises(KafkaException, match="_TIMED_OUT"):
        answer_of(Future[int](), 0.01)
