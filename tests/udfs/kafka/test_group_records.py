"""Records of consumer, share and streams groups, as a broker wrote them, beside Kafka's own converters to JSON."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.udfs.kafka.broker_records import CONSTRUCTED, GROUPS_OF_VERSIONS, LINES, Line
from tests.udfs.kafka.golden_records import AT, GOLDEN
from udfs.kafka.consumer_offsets import events_of
from udfs.kafka.group_records import RECORD_TYPES
from udfs.model.events import GroupRecord, MemberInfo, TopicPartitions
from udfs.model.queues import ascending
from udfs.model.rejection import Rejection

WRITTEN = [("4.1.1", line) for line in LINES] + GROUPS_OF_VERSIONS + [("", line) for line in CONSTRUCTED]
BY_VERSION = [(version, line) for version, line in WRITTEN if int.from_bytes(line.key[:2], "big") in RECORD_TYPES]
RECORDED = [line for _, line in BY_VERSION]
STATES = {"consumer": ("stable", "unrevoked", "unreleased"), "share": ("stable",)}
STREAMS_STATES = (None, "stable", "unrevoked", "unreleased")


def read(line: Line) -> GroupRecord:
    (record,) = events_of(line.key, line.value, line.at, "c")
    assert isinstance(record, GroupRecord)
    return record


def held(shown: list[dict[str, Any]]) -> tuple[TopicPartitions, ...]:
    named = [(topic.get("topicId", topic.get("subtopologyId")), topic["partitions"]) for topic in shown]
    return tuple(sorted(TopicPartitions(name, tuple(sorted(numbers))) for name, numbers in named))


def test_every_type_that_a_broker_writes_today_is_among_its_records() -> None:
    found: dict[str, set[int]] = {}
    for version, line in BY_VERSION:
        if line.value is not None:
            found.setdefault(version, set()).add(int.from_bytes(line.key[:2], "big"))
    everything = set(RECORD_TYPES) - {4}  # written up to 4.0
    assert (found["3.9.1"], found["4.1.1"], found["4.4.0"]) == ({3, 4, 5, 6, 7, 8}, everything, everything - {16})
    # What the newest writes beside.
    assert any("assignmentTimestamp" in (line.shown or {}) for _, line in GROUPS_OF_VERSIONS)
    assert any("validatedTopologyEpoch" in (line.shown or {}) for _, line in GROUPS_OF_VERSIONS)


@pytest.mark.parametrize("line", RECORDED, ids=range(len(RECORDED)))
def test_each_record_of_a_broker_reads_as_kafka_shows_it(line: Line) -> None:
    record, key, shown = read(line), line.key_shown, line.shown
    protocol, kind = RECORD_TYPES[int.from_bytes(line.key[:2], "big")]
    assert (record.group, record.member_id) == (key["groupId"], key.get("memberId"))
    assert (record.protocol, record.record, record.event_time) == (protocol, kind, line.at)
    assert record.deleted == (shown is None)
    if kind == "pattern":
        assert record.pattern == key["regularExpression"]
    if shown is None:
        return
    match kind:
        case "group" | "topology":
            assert record.epoch == shown["epoch"]
            subtopologies = {
                subtopology["subtopologyId"]: sources(subtopology) for subtopology in shown.get("subtopologies", [])
            }
            assert (record.subtopologies or {}) == subtopologies
        case "topics":
            assert record.topic_ids == {topic["topicId"]: topic["topicName"] for topic in shown["topics"]}
        case "target":
            assert record.epoch == shown["assignmentEpoch"]
        case "pattern":
            assert record.topics == tuple(shown["topics"])
        case "member":
            check_member(record, shown)
        case "member_target":
            listed = shown.get("topicPartitions", shown.get("activeTasks"))
            assert ascending(record.partitions or ()) == held(listed)
            if protocol == "streams":
                assert (record.standby, record.warmup) == (held(shown["standbyTasks"]), held(shown["warmupTasks"]))
            if protocol == "consumer":
                assert [list(topic.partitions) for topic in sorted(record.partitions or ())] == [
                    topic["partitions"] for topic in sorted(listed, key=lambda topic: topic["topicId"])
                ]
        case _:
            states = STREAMS_STATES if protocol == "streams" else STATES[protocol]
            reported = (record.epoch, record.previous_epoch, record.state)
            assert reported == (shown["memberEpoch"], shown["previousMemberEpoch"], states[shown["state"]])
            assert record.partitions == held(shown.get("assignedPartitions", shown.get("activeTasks")))
            if protocol == "consumer":
                assert record.revoking == held(shown["partitionsPendingRevocation"])
            elif protocol == "streams":
                assert (record.standby, record.warmup) == (held(shown["standbyTasks"]), held(shown["warmupTasks"]))
                revoking = [shown[f"{kind}TasksPendingRevocation"] for kind in ("active", "standby", "warmup")]
                assert record.revoking == tuple(partitions for listed in revoking for partitions in held(listed))


def sources(shown: dict[str, Any]) -> tuple[str, ...]:
    """Return the topics that a subtopology consumes, those that another one repartitions for it included."""
    repartitioned = (topic["name"] for topic in shown["repartitionSourceTopics"])
    return tuple(sorted({*shown["sourceTopics"], *repartitioned}))


def check_member(record: GroupRecord, shown: dict[str, Any]) -> None:
    classic = shown.get("classicMemberMetadata")
    topics = shown.get("subscribedTopicNames")
    assert record.member == MemberInfo(
        member_id=record.member_id or "",
        client_id=shown["clientId"],
        host=shown["clientHost"],
        instance_id=shown.get("instanceId"),
        rack=shown["rackId"],
        subscriptions=None if topics is None else tuple(topics),
        strategies=assignors(shown) if record.protocol == "consumer" else None,
        rebalance_timeout_ms=shown.get("rebalanceTimeoutMs"),
        session_timeout_ms=classic["sessionTimeoutMs"] if classic else None,
        protocol="classic" if classic else record.protocol,
        process_id=shown.get("processId"),
    )
    assert record.pattern == (shown.get("subscribedTopicRegex") or None)
    named = tuple(protocol["name"] for protocol in classic["supportedProtocols"]) if classic else None
    assert record.classic_strategies == named


def assignors(shown: dict[str, Any]) -> tuple[str, ...]:
    return () if shown["serverAssignor"] is None else (f"server.{shown['serverAssignor']}",)


def test_a_member_that_speaks_the_classic_protocol_is_among_them() -> None:
    classic = [read(line).classic_strategies for line in RECORDED if (line.shown or {}).get("classicMemberMetadata")]
    assert ("range", "cooperative-sticky") in classic or ("range",) in classic


def test_topics_with_their_ids_as_brokers_up_to_4_0_write_them() -> None:
    (record,) = events_of(GOLDEN["key-4"], GOLDEN["partition-metadata"], AT, "c")
    assert isinstance(record, GroupRecord)
    assert record.topic_ids == {"AAAAAAAAAAEAAAAAAAAAAg": "orders", "AAAAAAAAAAMAAAAAAAAABA": "bills"}


def test_a_target_keeps_the_order_in_which_its_partitions_are_written() -> None:
    line = next(
        line
        for line in RECORDED
        if [topic["partitions"] for topic in (line.shown or {}).get("topicPartitions", [])] == [[0, 1]]
    )
    assert line.value is not None
    swapped = line.value.replace(b"\x00\x00\x00\x00\x00\x00\x00\x01", b"\x00\x00\x00\x01\x00\x00\x00\x00")
    (held,) = read(line._replace(value=swapped)).partitions or ()
    assert held.partitions == (1, 0)


def test_a_target_keeps_the_order_in_which_its_topics_are_written() -> None:
    """The coordinator's map has them in it; what a member has now is compared with it, so that is sorted."""
    ids = [bytes([number]) * 16 for number in (3, 1, 2)]
    topics = b"".join(topic_id + b"\x02\x00\x00\x00\x00" + b"\x00" for topic_id in ids)
    names = [base64.urlsafe_b64encode(topic_id).decode().rstrip("=") for topic_id in ids]
    target = next(line for line in RECORDED if line.key[:2] == b"\x00\x07" and line.value)
    now = next(line for line in RECORDED if line.key[:2] == b"\x00\x08" and line.value)
    assert now.value is not None
    held = read(target._replace(value=b"\x00\x00" + b"\x04" + topics + b"\x00")).partitions or ()
    assert [partitions.topic for partitions in held] == names
    written = b"\x00\x00" + bytes(4) + bytes(4) + b"\x00" + b"\x04" + topics + b"\x01" + b"\x00"
    owned = read(now._replace(value=written)).partitions or ()
    assert [partitions.topic for partitions in owned] == sorted(names)
    assert ascending(held) == owned


def test_records_have_the_offset_at_which_they_were_read() -> None:
    line = RECORDED[0]
    (record,) = events_of(line.key, line.value, line.at, "c", offset=17)
    assert isinstance(record, GroupRecord)
    assert record.offset == 17


def test_fields_of_later_versions_are_skipped() -> None:
    line = next(line for line in RECORDED if line.shown and "assignmentEpoch" in line.shown)
    assert line.value is not None
    tagged = line.value[:-1] + b"\x01\x00\x08" + bytes(8)  # tag 0, eight bytes: when it was assigned
    assert read(line._replace(value=tagged)) == read(line)


VALUES = [line for line in RECORDED if line.value]


@pytest.mark.parametrize("line", VALUES, ids=range(len(VALUES)))
def test_damaged_records_are_values_and_not_errors(line: Line) -> None:
    assert line.value is not None
    values = [b"", b"\x00\x01" + line.value[2:]]
    if RECORD_TYPES[int.from_bytes(line.key[:2], "big")][0] == "consumer":
        values += [line.value[:length] for length in range(2, len(line.value))]
    for value in values:
        (rejection,) = events_of(line.key, value, line.at, "c")
        assert isinstance(rejection, Rejection), value
        assert rejection.reason == "kafka_record_undecodable"
    if line.key_shown.get("memberId"):
        (rejection,) = events_of(line.key[:-1], line.value, line.at, "c")
        assert isinstance(rejection, Rejection)
