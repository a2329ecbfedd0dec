"""Groups in the middle of a rebalance."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from streaming.collectors.kafka.groups_under_way import GroupsUnderWay
from streaming.collectors.kafka.metadata_client import MetadataClient
from streaming.collectors.kafka.options import KafkaOptions
from tests.kit.brokers import Broker
from tests.kit.members import Member
from tests.kit.processes import wait_until
from tests.kit.topics import create_topic
from udfs.kafka.consumer_offsets import GroupPatterns

PREPARING, COMPLETING = "PreparingRebalance", "CompletingRebalance"


def test_each_state_is_reported_once_and_again_after_another() -> None:
    groups = GroupsUnderWay("c", GroupPatterns([".*"], ["hidden"]))

    def shown(states: dict[str, str]) -> list[tuple[str, str | None, int]]:
        return [(event.group, event.state, event.event_time) for event in groups.diff(states, 7)]

    assert shown({"b": PREPARING, "a": PREPARING, "hidden": PREPARING}) == [("a", PREPARING, 7), ("b", PREPARING, 7)]
    assert shown({"b": PREPARING, "a": COMPLETING}) == [("a", COMPLETING, 7)]
    assert shown({}) == []
    assert shown({"a": COMPLETING, "b": PREPARING}) == [("a", COMPLETING, 7), ("b", PREPARING, 7)]


def test_a_group_that_two_polls_lack_rebalances_no_longer() -> None:
    groups = GroupsUnderWay("c", GroupPatterns([".*"], ["hidden"]))

    def shown(*names: str) -> list[tuple[str, str | None]]:
        return [(event.group, event.state) for event in groups.diff(dict.fromkeys(names, PREPARING), 7)]

    assert shown("a", "b", "hidden") == [("a", PREPARING), ("b", PREPARING)]
    assert shown("b") == []
    assert shown("a") == [("a", PREPARING)]  # its broker had not answered, or it is another rebalance
    assert shown() == [("b", "Stable")]
    assert shown() == [("a", "Stable")]
    assert shown() == []
    assert shown("a") == [("a", PREPARING)]


@pytest.mark.broker
def test_a_group_that_waits_for_a_slow_member_is_listed(each_kafka: Broker, new_member: Callable[..., Member]) -> None:
    group = f"slow-{each_kafka.version}"
    create_topic(each_kafka, group, 2)
    slow = new_member(each_kafka, group, [group], client_id="slow", session_timeout_ms=30_000)
    slow.wait_until(lambda: len(slow.owned) == 2)
    slow.stop_polling()
    other = new_member(each_kafka, group, [group], client_id="other", session_timeout_ms=30_000)
    with MetadataClient(KafkaOptions(each_kafka.bootstrap, "c", {})) as view:
        if each_kafka.version == "1.0.2":
            assert view.groups_under_way() == {}  # it has no such request
            return
        wait_until(lambda: view.groups_under_way().get(group) == PREPARING, "the group that waits for its slow member")
        slow.poll_again()
        other.wait_until(lambda: len(other.owned) == 1)
        assert group not in view.groups_under_way()
