"""What can be read of a group in a batch: timeouts, heartbeats, topics."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core_config import core_config
from tests.udfs.group.group_script import Topics
from udfs.group.state.group import Group, Member
from udfs.group.state.view import GroupView
from udfs.model.events import QueueInfo, TopicQueues
from udfs.model.group_api import GroupInput
from udfs.model.journal import GroupChanged

END = 10_000_000


def view(group: Group, system: str = "kafka", topics: Topics | None = None, **fields: Any) -> GroupView:
    given = {"cluster": "c", "system": system, "group_id": "g", "clock_before": None, "clock": END, "detected_at": 0}
    return GroupView(group, GroupInput(**{**given, **fields}), topics or Topics(), core_config())


def member(**fields: Any) -> Member:
    return Member(member_id="m", name="m", joined_at=0, **fields)


def test_up_to_a_change_of_the_timeout_the_old_one_counts_and_no_session_ends_before_the_change() -> None:
    group_view = view(Group(), last_heartbeat={"m": 100})
    assert group_view.deadline_of(member()) == 100 + 45_000
    assert group_view.deadline_of(member(session_timeout_ms=10)) == 110
    # Changed at 150; reported late, it counts from when it was applied.
    assert group_view.deadline_of(member(session_timeout_ms=10, field_times={"session_timeout_ms": 150})) == 150
    assert group_view.deadline_of(member(session_timeout_ms=10, timeout_since=160)) == 160
    assert group_view.deadline_of(member(session_timeout_ms=100, timeout_since=160)) == 200


@pytest.mark.parametrize(("until", "last"), [(49, 50), (99, 50), (100, 100), (250, 200), (300, 300)])
def test_the_last_heartbeat_is_the_newest_up_to_a_time_or_the_one_that_was_applied(until: int, last: int) -> None:
    group_view = view(Group(last_heartbeats={"n": 7}), last_heartbeat={"m": 50}, heartbeats={"m": [10, 100, 200, 300]})
    assert group_view.last_heartbeat("m", until) == last
    assert [group_view.last_heartbeat_or_none(name, until) for name in ("m", "n", "x")] == [last, 7, None]


def test_settings_of_a_group_are_its_own_or_those_last_used_or_the_default() -> None:
    assert view(Group(), "rocketmq").strategy_now() == "rocketmq.AVG"
    assert view(Group(last_strategy="kafka.sticky")).strategy_now() == "kafka.sticky"
    assert view(Group(strategy="range", last_strategy="kafka.sticky")).strategy_now() == "kafka.range"
    failed = GroupChanged(system="kafka", state="failed")
    assert view(Group(row=failed)).strategy_now() is None
    assert view(Group(row=failed, strategy="range")).strategy_now() == "kafka.range"
    assert view(Group(mode="message"), "metaq").settings_now() == (("metaq.default", None, "metaq"), "message", {})


def test_only_rocketmqs_retry_topics_are_quiet() -> None:
    assert view(Group(), "rocketmq").is_quiet("%RETRY%g")
    assert not view(Group(), "rocketmq").is_quiet("t%RETRY%g")
    assert not view(Group(), "kafka").is_quiet("%RETRY%g")


def test_a_partition_of_kafka_has_no_broker_and_is_there_once() -> None:
    topics = Topics()
    named = (QueueInfo(1, "a"), QueueInfo(0, "b"), QueueInfo(0, "a", rack="r"))
    common = {"schema_version": 1, "event_time": 5, "cluster": "c", "topic": "t", "queues": named}
    topics.take(TopicQueues(**common, system="kafka"))  # type: ignore[arg-type]
    assert view(Group(), topics=topics).queues_at("t", 5) == (QueueInfo(0, None, "r"), QueueInfo(1))
    assert view(Group(), "metaq", topics).queues_at("t", 5) == (
        QueueInfo(0, "a", "r"),
        QueueInfo(1, "a"),
        QueueInfo(0, "b"),
    )
    assert view(Group(), topics=topics).queues_at("t", 4) is None


def test_the_first_queues_of_a_topic_count_at_the_time_at_which_it_was_reported() -> None:
    topics = Topics()
    for at, count in ((5, 2), (9, 4)):
        event = {"schema_version": 1, "event_time": at, "system": "kafka", "cluster": "c", "topic": "t"}
        topics.take(TopicQueues(**event, queue_count=count))  # type: ignore[arg-type]
    group_view = view(Group(), topics=topics)
    assert [None if (found := group_view.first_queues("t", at)) is None else len(found) for at in (4, 5, 9)] == [
        None,
        2,
        2,
    ]


def test_differences_between_two_assignments_are_computed_once() -> None:
    group_view = view(Group())
    before, after = {("t", None, 0): ("a",)}, {("t", None, 0): ("b",)}
    changed = group_view.changed_queues(before, after)
    assert changed == [(("t", None, 0), ("a",), ("b",))]
    assert group_view.changed_queues(before, after) is changed
    assert group_view.changed_queues(after, before) == [(("t", None, 0), ("b",), ("a",))]
