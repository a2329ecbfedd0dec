"""Which client libraries may have written a record, by bytes that real ones wrote to a 4.1 broker."""

import json
from pathlib import Path

import pytest

from udfs.kafka.consumer_protocol import ConsumerSubscription, read_subscription
from udfs.kafka.library_evidence import libraries_of, text_of

WRITTEN = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "golden" / "libraries" / "written.jsonl").read_text().splitlines()
]
# By the client's version: what the bytes can show of it.
LABELS = {"java-2.8.2": "java-2.4+", "java-3.9.1": "java-3.4+", "java-4.1.1": "java-3.4+"}


def shown(line: dict, client_id: str | None) -> tuple[str, ...]:
    subscription = read_subscription(bytes.fromhex(line["subscription"]), line["strategy"])
    assignments = [bytes.fromhex(data) for data in line["assignments"]]
    return libraries_of(
        subscription, line["strategy"], client_id, one_timeout=line["one_timeout"], assignments=assignments
    )


@pytest.mark.parametrize("line", WRITTEN, ids=lambda line: f"{line['library']}-{line['strategy']}")
def test_a_library_with_its_own_client_id_is_certain(line: dict) -> None:
    assert shown(line, line["client_id"]) == (LABELS.get(line["library"], line["library"]),)


@pytest.mark.parametrize("line", WRITTEN, ids=lambda line: f"{line['library']}-{line['strategy']}")
def test_with_another_client_id_it_is_among_those_that_are_possible(line: dict) -> None:
    found = shown(line, "billing")
    assert LABELS.get(line["library"], line["library"]) in found
    if line["library"].startswith("java-") or line["library"] == "librdkafka":
        assert len(found) == 1
    # The id of another library does not outweigh bytes that this one alone writes.
    if len(found) == 1:
        assert shown(line, "rdkafka") == shown(line, "consumer-billing-1") == found


def test_java_librdkafka_and_franz_go_are_certain_by_their_bytes_alone() -> None:
    certain = {line["library"] for line in WRITTEN if len(shown(line, "billing")) == 1}
    assert {"java-2.8.2", "java-3.9.1", "java-4.1.1", "librdkafka", "franz-go", "kafka-python"} <= certain


@pytest.mark.parametrize(
    ("version", "user_data", "strategy", "rack", "found"),
    [
        (0, None, "range", None, "sarama|franz-go"),
        (0, b"", "range", None, "kafka-python|aiokafka|java-2.3|librdkafka-2.1"),
        (0, b"\0\1\0\0\0\0\0\0\0\1", "sticky", None, "kafka-python"),
        (0, b"\0\0\0\0\0\0\0\1", "sticky", None, "aiokafka|java-2.3|sarama"),
        (0, b"x", "custom", None, "java-2.3|kafka-python|aiokafka|librdkafka-2.1|sarama"),
        (1, None, "range", None, "java-2.4+|sarama"),
        (1, b"", "range", None, "librdkafka-2.1"),
        (1, b"", "cooperative-sticky", None, "kafka-python|librdkafka-2.1"),
        (1, b"\0\0\0\1", "cooperative-sticky", None, "java-2.4+|sarama"),
        (1, b"\0\0\0\0\0\0\0\1", "cooperative-sticky", None, "librdkafka-2.1"),
        (1, b"\0\0\0\0\0\0\0\1", "sticky", None, "java-2.4+|sarama"),
        (2, None, "range", None, "java-3.2+|franz-go"),
        (3, None, "range", "r", "java-3.4+|franz-go"),
        (3, b"", "range", "", "librdkafka"),
        (3, b"", "range", "r", "librdkafka"),
        (9, b"\0\0\0\1", "cooperative-sticky", None, "java-3.4+"),
        (3, b"\0\0\0\0", "cooperative-sticky", None, "franz-go"),
        (3, b"\0\0\0\0\0\0\0\1", "cooperative-sticky", "r", "franz-go|librdkafka"),
    ],
)
def test_a_subscription_allows_some_libraries(
    version: int, user_data: bytes | None, strategy: str, rack: str | None, found: str
) -> None:
    subscription = ConsumerSubscription(version=version, topics=("t",), user_data=user_data, rack=rack)
    assert text_of(libraries_of(subscription, strategy, None, one_timeout=False)) == found


def test_equal_timeouts_make_aiokafka_the_likelier_one() -> None:
    subscription = ConsumerSubscription(version=0, topics=("t",), user_data=b"")
    assert libraries_of(subscription, "range", None, one_timeout=True)[:2] == ("aiokafka", "kafka-python")


def test_unreadable_data_is_no_evidence() -> None:
    every = libraries_of(None, "range", None, one_timeout=False)
    assert libraries_of(None, "range", None, one_timeout=False, assignments=[b"", b"\0"]) == every
    assert {"java-2.3", "java-3.4+", "librdkafka", "sarama"} <= set(every)
    assert libraries_of(None, "range", "sarama-1", one_timeout=False) == ("sarama",)


def test_the_assignments_outweigh_a_subscription_that_contradicts_them() -> None:
    subscription = ConsumerSubscription(version=3, topics=("t",), rack="")
    written = b"\0\0" + b"\0\0\0\0" + b"\xff\xff\xff\xff"
    found = libraries_of(subscription, "range", "billing", one_timeout=False, assignments=[written])
    assert found == ("franz-go", "sarama")
