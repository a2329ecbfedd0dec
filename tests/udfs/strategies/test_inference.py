"""Which strategy a MetaQ group's owners show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from udfs.model.events import QueueInfo, QueueRef
from udfs.strategies.inference import CANDIDATES, infer_strategy

_GOLDEN = Path(__file__).parents[2] / "golden"
_RECORDED = "metamorphosis-client-1.4.6.2.jsonl"
# Of a real group: ids idA and idB of GroupC, twelve partitions of broker 0, loadBalanceStrategyType CONSIST.
_B = {0, 2, 3, 4, 11}
_SUBSCRIBED = {"GroupC_idA": ("t",), "GroupC_idB": ("t",)}
_TOPICS = {"t": [QueueInfo(queue_id=number, broker="0") for number in range(12)]}
_CONSISTENT = {
    QueueRef(topic="t", queue_id=number, broker="0"): "GroupC_idB" if number in _B else "GroupC_idA"
    for number in range(12)
}


def test_a_real_group_is_recognised() -> None:
    assert infer_strategy(_SUBSCRIBED, _TOPICS, _CONSISTENT) == "metaq.consistent-hash"


def test_one_queue_without_owner_or_with_another_decides_nothing() -> None:
    for queue, owner in _CONSISTENT.items():
        missing = {key: value for key, value in _CONSISTENT.items() if key != queue}
        assert infer_strategy(_SUBSCRIBED, _TOPICS, missing) is None
        other = "GroupC_idA" if owner == "GroupC_idB" else "GroupC_idB"
        assert infer_strategy(_SUBSCRIBED, _TOPICS, {**_CONSISTENT, queue: other}) is None
        stranger = {**_CONSISTENT, queue: "GroupC_gone"}
        assert infer_strategy(_SUBSCRIBED, _TOPICS, stranger) is None


def test_one_member_alone_shows_nothing() -> None:
    alone = dict.fromkeys(_CONSISTENT, "GroupC_idA")
    assert infer_strategy({"GroupC_idA": ("t",)}, _TOPICS, alone) is None


def test_nothing_shows_nothing() -> None:
    assert infer_strategy({}, {}, {}) is None
    assert infer_strategy(_SUBSCRIBED, {}, {}) is None
    assert infer_strategy({"a": ("unknown",)}, _TOPICS, _CONSISTENT) is None


@pytest.mark.parametrize("name", CANDIDATES)
def test_the_assignment_of_one_real_class_is_never_taken_for_the_other(name: str) -> None:
    """Over recorded answers of the client's own classes: the strategy itself, or nothing where both assign the same."""
    found = []
    for line in (_GOLDEN / name / _RECORDED).read_text().splitlines():
        reported = json.loads(line)
        members = reported["case"]["members"]
        if len({member["member_id"] for member in members}) < len(members) or not reported["held"]:
            continue  # two nodes of one name there cannot be
        found.append(infer_strategy(*_group(reported)))
    assert set(found) <= {name, None}
    assert found.count(name) >= 5


def _group(reported: dict[str, Any]) -> tuple[dict[str, list[str]], dict[str, list[QueueInfo]], dict[QueueRef, str]]:
    case = reported["case"]
    subscribed = {member["member_id"]: member["subscriptions"] for member in case["members"]}
    topics = {
        topic: [
            QueueInfo(queue_id=queue["queue_id"], broker=queue["broker"]) for queue in topic_case.get("queues") or ()
        ]
        or [QueueInfo(queue_id=number, broker="") for number in range(topic_case.get("queue_count") or 0)]
        for topic, topic_case in case["topics"].items()
    }
    owners = {
        QueueRef(topic=topic, queue_id=number, broker=broker or ""): member
        for member, held in reported["held"].items()
        for topic, broker, number in held
    }
    return subscribed, topics, owners
