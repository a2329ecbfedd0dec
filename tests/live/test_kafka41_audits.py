"""Audits that fail on purpose: real members on a real broker with assignors that do not keep to their names."""

from __future__ import annotations

import time

import msgspec
import pytest

from tests.kit.brokers import Broker
from tests.kit.group_records import records_of
from tests.kit.jars import JAVA, compiled
from tests.kit.members import start_member, wait_until_assigned
from tests.kit.topics import add_partitions, create_topic
from tests.udfs.group.group_script import T0, Script
from udfs.kafka.consumer_offsets import events_of
from udfs.model.audits import Audited
from udfs.model.events import GroupSnapshot

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]


def now_ms() -> int:
    return time.time_ns() // 1_000_000 - T0


def audits_of(broker: Broker, group: str, topic: str, sizes: dict[int, int]) -> list[Audited]:
    """Return the audits of a group as its records and its topic's sizes by time give them."""
    script = Script("kafka")
    for at, size in sizes.items():
        script.queues(at, topic, size)
    for number, record in enumerate(records_of(broker)):
        for event in events_of(record.key, record.value, record.at, "c"):
            if isinstance(event, GroupSnapshot) and event.group == group:
                script.waiting.append(msgspec.structs.replace(event, event_id=f"record-{number}"))
    return script.run(now_ms() + 1_000).audits()


@pytest.fixture(scope="module")
def wrong_classes() -> str:
    return str(compiled("kafka-4.1.1", "WrongAssignors", [JAVA / "WrongAssignors.java"]))


def test_a_custom_assignor_under_the_name_of_range_is_found(kafka41: Broker, wrong_classes: str) -> None:
    create_topic(kafka41, "audited-range", 4)
    began = now_ms()
    wrong = {"strategies": ["WrongAssignors$Rotated"], "classes": wrong_classes}
    with (
        start_member(kafka41, "audited-range", ["audited-range"], client_id="a", **wrong) as a,
        start_member(kafka41, "audited-range", ["audited-range"], client_id="b", **wrong) as b,
    ):
        wait_until_assigned([a, b], [("audited-range", partition) for partition in range(4)])
        ids = {"a": a.member_id, "b": b.member_id}
    found = audits_of(kafka41, "audited-range", "audited-range", {began: 4})
    audit = next(audit for audit in found if audit.members == 2)
    assert (audit.verdict, audit.reason, audit.strategy) == ("differs", "custom_strategy", "kafka.range")
    assert [(queue.queue_id, queue.kind, queue.expected, queue.reported) for queue in audit.differing] == [
        (0, "unexpected_owner", [ids["a"]], [ids["b"]]),
        (1, "unexpected_owner", [ids["a"]], [ids["b"]]),
        (2, "unexpected_owner", [ids["b"]], [ids["a"]]),
        (3, "unexpected_owner", [ids["b"]], [ids["a"]]),
    ]


def test_members_with_wrong_ownership_are_found(kafka41: Broker, wrong_classes: str) -> None:
    create_topic(kafka41, "audited-sticky", 4)
    sizes = {now_ms(): 4}
    wrong = {"strategies": ["WrongAssignors$Forgetful"], "classes": wrong_classes}
    with start_member(kafka41, "audited-sticky", ["audited-sticky"], client_id="a", **wrong) as a:
        # If both joined at once they would hold 0 and 2, 1 and 3, and each would keep those afterwards.
        wait_until_assigned([a], [("audited-sticky", partition) for partition in range(4)])
        with start_member(kafka41, "audited-sticky", ["audited-sticky"], client_id="b", **wrong) as b:
            wait_until_assigned([a, b], [("audited-sticky", partition) for partition in range(4)])
            sizes[now_ms()] = 8
            add_partitions(kafka41, "audited-sticky", 8)
            wait_until_assigned([a, b], [("audited-sticky", partition) for partition in range(8)])
    found = [audit for audit in audits_of(kafka41, "audited-sticky", "audited-sticky", sizes) if audit.members == 2]
    audit = next(audit for audit in found if audit.queues == 8)
    assert (audit.verdict, audit.reason, audit.strategy) == ("differs", "wrong_ownership", "kafka.sticky")
    assert audit.detail is not None
    assert "claimed queues of other members" in audit.detail
    assert audit.differing, "the queues are named"
    assert {queue.kind for queue in audit.differing} == {"unexpected_owner"}
