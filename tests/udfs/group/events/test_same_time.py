"""What the events of one time come to: only the state after all of them counts."""

from __future__ import annotations

import pytest

from tests.udfs.group.group_script import T0, Script
from udfs.model.journal import MemberChanged, MemberClosed, MemberOpened

KAFKA_TIMEOUT = 45_000


def test_changes_of_one_event_time_are_one_rebalance_with_the_gravest_cause_first() -> None:
    script = Script()
    script.queues(0, "t", 4)
    script.join(10, "a")
    script.join(20, "b")
    script.leave(20, "a")
    script.queues(20, "t", 5)
    assert script.run(21).decided()[1:] == ["20 #2 1->1 member_left:a member_joined:b queue_count_changed:t"]


def test_an_expiry_comes_after_the_events_of_its_time_in_the_same_rebalance() -> None:
    script = Script()
    script.join(10, "a")
    script.join(10 + KAFKA_TIMEOUT, "b")
    written = script.run(50_000).decided()
    assert written[1:] == [f"{10 + KAFKA_TIMEOUT} #2 1->1 session_expired:a member_joined:b"]


def test_what_is_older_than_changes_that_cancel_out_is_not_late() -> None:
    script = Script()
    script.join(10, "a")
    script.leave(30, "a")
    script.join(30, "a")
    script.run(40)
    script.join(20, "b")
    assert script.run(50).decided()[1:] == ["20 #2 1->2 member_joined:b"]


def test_a_first_description_in_several_events_of_one_time_is_one_change() -> None:
    script = Script("rocketmq")
    script.queues(0, "t", 2)
    script.beat(10, "a")
    script.run(20)
    script.beat(30, "a", subscriptions=("t",))
    script.join(30, "a", None, strategies=("CONSISTENT_HASH",), strategy_settings={"virtualNodeCnt": 20})
    script.run(40)
    assert script.decided()[1:] == ["30 #2 1->1 subscription_changed:a"]
    assert script.rebalances[-1].strategy == "rocketmq.CONSISTENT_HASH"


def test_a_member_that_departed_and_is_back_at_one_event_time_with_its_first_description_changed_once() -> None:
    script = Script("metaq")
    script.queues(0, "t", 1)
    script.beat(10, "a")
    script.run(20)
    script.leave(30, "a")
    script.join(30, "a", strategies=("metaq.consistent-hash",))
    script.run(40)
    assert script.decided()[1:] == ["30 #2 1->1 subscription_changed:a"]


def test_a_member_that_is_back_at_one_event_time_is_described_within_the_session_that_it_had() -> None:
    script = Script()
    script.join(10, "a", host="h1")
    script.leave(20, "a")
    script.join(20, "a", host="h2")
    script.beat(20, "a", host="h2", rack="r")
    script.run(30)
    written = script.bodies(MemberChanged)
    assert [(body.joined_at - T0, body.host, body.rack) for body in written] == [(10, "h2", "r")]
    assert script.sessions() == ["a 10.."]


def test_a_member_that_was_back_for_less_than_a_millisecond_departed_once_by_its_last_departure() -> None:
    script = Script("metaq")
    script.beat(10, "a", subscriptions=("t",), host="h")
    script.beat(15, "a")
    script.poll(20, "b")
    script.poll(20, ("a", "h2"), "b")
    script.leave(20, "a")
    script.run(30)
    assert script.decided() == ["10 #1 0->1 group_created member_joined:a", "20 #2 1->1 member_left:a member_joined:b"]
    assert script.sessions() == ["a 10..20 left", "b 20.."]
    closed = script.bodies(MemberClosed)
    assert [(body.joined_at - T0, body.last_heartbeat_at) for body in closed] == [(10, T0 + 15)]
    written = [body.host for body in script.bodies(MemberChanged)]
    assert written == ["h2"]
    assert script.group.departed["a"].member.joined_at == T0 + 10


def test_a_description_at_the_time_of_a_departure_stays_with_the_session() -> None:
    script = Script()
    script.beat(10, "a")
    script.poll(20, ("a", "h"))
    script.leave(20, "a")
    script.run(30)
    written = script.bodies(MemberOpened, MemberClosed)
    assert [type(body) for body in written] == [MemberOpened, MemberChanged, MemberClosed]


def test_a_member_that_is_back_at_one_event_time_with_the_strategy_that_was_assumed_changed_nothing() -> None:
    script = Script("metaq")
    script.join(10, "a")
    script.leave(20, "a")
    script.join(20, "a", strategies=("metaq.default",))
    script.run(30)
    assert script.decided() == ["10 #1 0->1 group_created member_joined:a"]


def test_a_change_is_named_by_the_id_that_a_static_member_has_after_its_event_time() -> None:
    script = Script()
    script.beat(10, "i-1")
    script.join(20, "i-1", ("t", "u"), instance_id="i")
    script.join(20, "i-2", None, instance_id="i")
    script.run(30)
    assert script.decided()[1:] == ["20 #2 1->1 subscription_changed:i-2"]


def test_changes_under_two_ids_of_a_static_member_that_cancel_out_within_an_event_time_are_none() -> None:
    script = Script()
    script.join(10, "i-1", ("t",), instance_id="i")
    script.join(20, "i-1", ("t", "u"), instance_id="i")
    script.join(20, "i-2", ("t",), instance_id="i")
    script.run(30)
    assert len(script.decided()) == 1
    assert script.sessions() == ["i-1 10..20 replaced", "i-2 20.."]


def test_spans_move_to_the_new_id_of_a_static_member_where_its_changes_cancel_out() -> None:
    script = Script()
    script.queues(0, "t", 1)
    script.join(10, "i-1", instance_id="i")
    script.join(20, "i-1", ("t", "u"), instance_id="i")
    script.join(20, "i-2", ("t",), instance_id="i")
    assert script.run(30).spans() == ["t/0 i-1 10..20", "t/0 i-2 20.."]


def test_a_member_that_left_and_was_back_at_the_time_at_which_another_id_replaced_it_never_left() -> None:
    script = Script()
    script.queues(0, "t", 1)
    script.beat(10, "i-1", subscriptions=("t",))
    script.leave(20, "i-1")
    script.join(20, "i-1", None, instance_id="i")
    script.join(20, "i-2", None, instance_id="i")
    script.run(30)
    assert len(script.decided()) == 1
    assert script.sessions() == ["i-1 10..20 replaced", "i-2 20.."]
    assert script.spans() == ["t/0 i-1 10..20", "t/0 i-2 20.."]


def test_a_member_that_was_back_and_replaced_at_one_event_time_is_described_under_both_ids() -> None:
    script = Script()
    script.join(10, "i-1")
    script.leave(20, "i-1")
    script.join(20, "i-1", ("t", "u"), instance_id="i")
    script.join(20, "i-2", strategies=("sticky",), instance_id="i")
    script.run(30)
    assert script.decided()[1:] == ["20 #2 1->1 strategy_changed:i-2"]
    written = script.bodies(MemberOpened)
    assert [(body.member_id, body.joined_at - T0, body.subscriptions) for body in written[1:]] == [
        ("i-1", 10, ("t", "u")),
        ("i-2", 20, ("t",)),
    ]


def test_a_static_member_that_left_and_was_back_at_the_time_of_its_new_id_never_left() -> None:
    script = Script()
    script.join(10, "i-1", instance_id="i")
    script.snapshot(20, None, {"i-2": ["t"]}, describe={"i-2": {"instance_id": "i"}})
    script.leave(20, "i-2")
    script.join(20, "i-2", ("t", "u"), instance_id="i")
    script.run(30)
    assert script.decided()[1:] == ["20 #2 1->1 subscription_changed:i-2"]
    written = script.bodies(MemberOpened)
    assert [(body.member_id, body.former_member_id, body.subscriptions) for body in written[1:]] == [
        ("i-2", "i-1", ("t", "u"))
    ]


def test_a_static_member_that_left_at_the_time_of_its_new_id_left_under_that_one() -> None:
    script = Script()
    script.join(10, "i-1", instance_id="i")
    script.snapshot(20, None, {})
    script.snapshot(20, None, {"i-1": ["t"]}, describe={"i-1": {"instance_id": "i"}})
    script.snapshot(20, None, {"i-2": ["t"]}, describe={"i-2": {"instance_id": "i"}})
    script.leave(20, "i-2")
    script.run(30)
    assert script.decided()[1:] == ["20 #2 1->0 member_left:i-2"]
    assert script.sessions() == ["i-1 10..20 replaced"]


def test_an_id_that_left_and_took_the_place_of_a_static_member_at_one_event_time_did_leave() -> None:
    script = Script()
    script.join(10, "i-1", instance_id="i")
    script.join(12, "i-2")
    script.leave(20, "i-2")
    script.join(20, "i-2", instance_id="i")
    script.run(30)
    assert script.decided()[2:] == ["20 #3 2->1 member_left:i-2"]
    assert script.sessions() == ["i-1 10..20 replaced", "i-2 12..20 left", "i-2 20.."]


def test_a_mode_that_changes_beside_strategies_that_cancel_out_is_the_only_cause() -> None:
    script = Script("rocketmq")
    script.queues(0, "t", 2)
    script.join(10, "a")
    script.settings(20, mode="broadcasting")
    script.run(25)
    script.settings(30, mode="clustering")
    script.settings(30, strategy="AVG_BY_CIRCLE")
    script.settings(30, strategy="AVG")
    assert script.run(40).decided()[-1] == "30 #3 1->1 settings_changed"


def test_a_strategy_that_is_set_while_a_change_to_broadcasting_settles_is_a_cause() -> None:
    script = Script("metaq", settle_ms=100)
    script.queues(0, "t", 2)
    script.join(10, "a", strategies=("metaq.consistent-hash",))
    script.run(500)
    script.settings(1_000, mode="broadcasting")
    script.settings(1_001, strategy="metaq.consistent-hash")
    assert script.run(2_000).decided()[-1] == "1001 #2 1->1 strategy_changed settings_changed"


def test_what_cancels_out_does_not_move_changes_that_settle_even_if_it_is_a_cause_of_them_already() -> None:
    script = Script("rocketmq", settle_ms=100)
    script.join(-2_000, "a", strategies=("AVG", "AVG_BY_CIRCLE"))
    script.settings(10, strategy="AVG_BY_CIRCLE")
    script.join(20, "b", strategies=("AVG_BY_CIRCLE",))
    script.settings(30, strategy="AVG")
    script.settings(30, strategy="AVG_BY_CIRCLE")
    decided = script.run(500).decided()
    assert [row.split()[0] for row in decided[1:]] == ["20"]
    assert {one.kind for one in script.rebalances[-1].triggers} == {"member_joined", "strategy_changed"}


def test_a_cause_that_comes_again_while_changes_settle_moves_them() -> None:
    script = Script("rocketmq", settle_ms=100)
    script.join(-2_000, "a", strategies=("AVG", "AVG_BY_CIRCLE"))
    script.settings(10, strategy="AVG_BY_CIRCLE")
    script.settings(30, strategy="AVG")
    assert script.run(500).decided()[1:] == ["30 #2 1->1 strategy_changed"]


def test_another_strategy_in_a_poll_is_a_cause_beside_settings_of_its_event_time() -> None:
    script = Script()
    script.queues(0, "t", 4)
    script.snapshot(10, None, {"a": ["t"]}, strategy="range")
    script.snapshot(20, None, {"a": ["t"]}, strategy="roundrobin")
    script.settings(20, strategy_settings={"x": 1})
    script.run(30)
    assert script.decided()[1:] == ["20 #2 1->1 strategy_changed settings_changed"]


def test_another_strategy_in_a_poll_that_the_next_one_of_its_event_time_takes_back_is_none() -> None:
    script = Script()
    script.queues(0, "t", 4)
    script.snapshot(10, None, {"a": ["t"]}, strategy="range")
    script.snapshot(20, None, {"a": ["t"]}, strategy="roundrobin")
    script.snapshot(20, None, {"a": ["t"]}, strategy="range")
    script.run(30)
    assert len(script.decided()) == 1


@pytest.mark.parametrize("is_first", [True, False])
def test_spans_move_to_a_new_id_at_once_whatever_else_of_its_event_time_begins_a_rebalance(is_first: bool) -> None:
    script = Script(settle_ms=500)
    script.queues(0, "t", 1)
    script.join(10, "i-1", instance_id="i")
    script.run(1_000)
    if is_first:
        script.settings(1_000, strategy="roundrobin")
    script.join(1_000, "i-2", instance_id="i")
    if not is_first:
        script.settings(1_000, strategy="roundrobin")
    assert script.run(1_001).spans() == ["t/0 i-1 10..1000", "t/0 i-2 1000.."]
