"""The types of the contract: limits, what is absent, the order of events at one event time."""

from typing import Any, get_args

import msgspec
import pytest

from tests.udfs.event_lines import QUEUE, VALID
from udfs.model.annotations import ContractEvent
from udfs.model.events import (
    ORDER_AT_ONE_TIME,
    AnyEvent,
    Generation,
    Heartbeat,
    Name,
    Offset,
    OwnedGeneration,
    QueueCount,
    QueueId,
    QueueInfo,
    QueueRef,
    SpanMs,
)


@pytest.mark.parametrize(
    ("kind", "least", "most"),
    [
        (QueueId, 0, 2**31 - 1),
        (Offset, 0, 2**63 - 1),
        # Spans are added to times: both are whole numbers of a double.
        (SpanMs, 0, 2**53 - 1),
        (Generation, 0, 2**63 - 1),
        # Kafka's -1: none yet.
        (OwnedGeneration, -1, 2**63 - 1),
        (QueueCount, 0, 100_000),
    ],
)
def test_numbers_have_limits_and_may_be_at_them(kind: Any, least: int, most: int) -> None:
    for number in (least, most):
        assert msgspec.convert(number, kind) == number
    for number in (least - 1, most + 1):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(number, kind)


def test_a_name_has_at_least_one_character_and_at_most_as_many_as_kafkas_group_ids() -> None:
    for name in ("g", "g" * 32_767):
        assert msgspec.convert(name, Name) == name
    for name in ("", "g" * 32_768):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(name, Name)


def test_missing_fields_differ_from_empty_ones() -> None:
    absent = msgspec.convert(VALID["heartbeat"], AnyEvent)
    empty = msgspec.convert({**VALID["heartbeat"], "subscriptions": [], "owned": []}, AnyEvent)
    assert isinstance(absent, Heartbeat)
    assert isinstance(empty, Heartbeat)
    assert (absent.subscriptions, absent.owned) == (None, None)
    assert (empty.subscriptions, empty.owned) == ((), ())
    # Written again, both are what they were.
    assert msgspec.to_builtins(absent) == VALID["heartbeat"]
    assert msgspec.to_builtins(empty) == {**VALID["heartbeat"], "subscriptions": (), "owned": ()}


@pytest.mark.parametrize("name", VALID)
def test_each_type_is_recognized_by_its_tag_alone(name: str) -> None:
    event = msgspec.convert(VALID[name], ContractEvent)
    assert event.__struct_config__.tag == VALID[name]["type"]


def test_event_types_with_equal_timestamps_sort_as_documented() -> None:
    order = [kind.__struct_config__.tag for kind in sorted(ORDER_AT_ONE_TIME, key=ORDER_AT_ONE_TIME.__getitem__)]
    assert order == [
        "topic_queues",
        "group_settings",
        "group_record",
        "group_deleted",
        "commits_deleted",
        "group_snapshot",
        "member_left",
        "member_joined",
        "heartbeat",
        "progress",
        "assignment_reported",
        "queue_ends",
        "clock",
    ]
    assert set(ORDER_AT_ONE_TIME) == set(get_args(AnyEvent))
    assert len(set(ORDER_AT_ONE_TIME.values())) == len(ORDER_AT_ONE_TIME)


def test_queues_sort_by_topic_then_id_and_are_keys_of_maps() -> None:
    queues = [QueueRef("u", 0), QueueRef("t", 10), QueueRef("t", 2)]
    assert sorted(queues) == [QueueRef("t", 2), QueueRef("t", 10), QueueRef("u", 0)]
    assert len({msgspec.convert(QUEUE, QueueRef), msgspec.convert(QUEUE, QueueRef)}) == 1
    assert QueueInfo(1) != QueueInfo(1, racks=())
