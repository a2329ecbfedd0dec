"""What members report themselves: descriptions, late departures, late heartbeats."""

from __future__ import annotations

import pytest

from tests.udfs.group.group_script import Script
from udfs.model.events import QueueRef


@pytest.mark.parametrize(
    ("system", "name", "reported"),
    [
        ("rocketmq", "AVG", []),
        ("rocketmq", "AVG_BY_CIRCLE", ["500 #2 1->1 strategy_changed:a"]),
        ("metaq", "default", []),
        ("kafka", "range", ["500 #2 1->1 strategy_changed:a"]),
    ],
)
def test_a_member_that_names_the_strategy_it_was_taken_to_have_changes_nothing(
    system: str, name: str, reported: list[str]
) -> None:
    script = Script(system)
    script.queues(0, "t", 4)
    script.poll(10, "a")
    script.snapshot(500, None, {"a": ["t"]}, describe={"a": {"strategies": (name,)}})
    script.run(1_000)
    assert script.decided()[1:] == reported
    assert script.group.members["a"].strategies == (name,)


def test_members_with_a_changed_class_allocate_by_it_from_then_on() -> None:
    script = Script("rocketmq")
    script.queues(0, "t", 4)
    both = {"a": ["t"], "b": ["t"]}
    script.snapshot(10, None, both, describe={name: {"strategies": ("AVG",)} for name in both})
    circle = {"a": {"strategies": ("AVG",)}, "b": {"strategies": ("AVG_BY_CIRCLE",)}}
    script.snapshot(1_000, None, both, describe=circle)
    script.snapshot(2_000, None, both, describe={name: {"strategies": ("AVG_BY_CIRCLE",)} for name in both})
    script.run(3_000)
    assert script.decided()[1:] == ["1000 #2 2->2 strategy_changed:b", "2000 #3 2->2 strategy_changed:a"]
    assert script.owners(1_500) == {"t/0": "a", "t/1": "a+b", "t/3": "b"}
    assert script.owners(2_500) == {"t/0": "a", "t/1": "b", "t/2": "a", "t/3": "b"}
    assert script.findings() == ["strategies_differ 1000..2000", "unassigned_queues 1000..2000"]


def test_a_members_custom_class_ends_computed_spans_with_a_finding_while_reported_ones_continue() -> None:
    script = Script("rocketmq")
    script.queues(0, "t", 2)
    script.poll(10, "a")
    script.holds(20, "a", [("t", 0), ("t", 1)])
    script.snapshot(1_000, None, {"a": ["t"]}, describe={"a": {"strategies": ("com.example.Nearest",)}})
    script.poll(2_000, "a", "b")
    script.run(3_000)
    last = script.rebalances[1]
    assert (last.status, last.error, last.strategy) == (
        "completed",
        "not_recomputable",
        "rocketmq.com.example.Nearest",
    )
    assert (last.idle_members, last.unassigned_queues, last.agrees) == (0, 0, None)
    assert script.owners(1_500) == {}
    assert script.owners(2_500, "reported") == {"t/0": "a", "t/1": "a"}
    assert script.row().state == "stable"
    # What is not known is not wrong: only that they differ.
    assert script.findings() == ["idle_members 2000..", "strategies_differ 2000.."]


def test_a_session_that_comes_late_is_listed_whichever_members_were_there_before() -> None:
    script = Script("rocketmq")
    script.queues(0, "t", 1)
    script.join(0, "a", session_timeout_ms=4_000)
    script.join(40_000, "b", session_timeout_ms=90_000)
    script.run(50_000)
    script.beat(12_000, "a")
    script.run(60_000)
    assert len(script.decided()) == 3
    assert script.sessions() == ["a 0..4000 expired", "a 12000..16000 expired", "b 40000.."]


@pytest.mark.parametrize("described", [False, True])
def test_a_late_departure_of_a_member_that_is_alive_later_in_the_batch_ends_nothing(described: bool) -> None:
    script = Script("rocketmq")
    script.queues(0, "t", 1)
    script.join(0, "a", session_timeout_ms=90_000)
    script.join(40_000, "b", session_timeout_ms=90_000)
    script.run(50_000)
    script.leave(12_000, "a")
    script.beat(55_000, "a", **({"strategies": ("AVG",)} if described else {}))
    script.run(60_000)
    assert script.sessions() == ["a 0..", "b 40000.."]


@pytest.mark.parametrize(
    ("at", "fields", "ignored", "outdated"),
    [
        # That it was alive then is nothing new, nor that it was before.
        (1_000, {}, True, False),
        (500, {}, True, False),
        (1_000, {"rack": "r1"}, True, False),
        # Who sent another rack is to find it among the late events.
        (500, {"rack": "r0"}, False, True),
        # Its session ends later than it did, or there was one more.
        (2_000, {}, False, False),
        (2_000, {"rack": "r0"}, False, False),
        (12_000, {}, False, False),
    ],
)
def test_a_late_heartbeat_that_changes_nothing_is_ignored_and_one_with_older_fields_is_outdated(
    at: int, fields: dict[str, str], ignored: bool, outdated: bool
) -> None:
    script = Script("rocketmq")
    script.queues(0, "t", 1)
    script.join(1_000, "a", rack="r1", session_timeout_ms=4_000)
    script.join(40_000, "b", session_timeout_ms=90_000)
    script.run(50_000)
    script.beat(at, "a", event_id="late", **fields)
    script.run(60_000)
    assert script.last.ignored_event_ids == (["late"] if ignored else [])
    assert script.last.outdated == (["late"] if outdated else [])


def test_what_a_member_owned_before_it_departed_is_forgotten() -> None:
    script = Script(settle_ms=100)
    script.join(10, "a", strategies=("sticky",), owned=(QueueRef("t", 0),))
    script.leave(20, "a")
    script.beat(30, "a")
    script.run(40)  # within the settling time: nothing is decided yet
    assert script.group.members["a"].owned is None


def test_a_late_heartbeat_that_describes_a_member_at_its_last_sign_of_life_is_listed() -> None:
    script = Script(session_timeouts_ms={"kafka": 1_000})
    script.join(10, "a")
    script.join(20, "b")
    script.beat(4_000, "b")
    script.run(5_000)
    script.beat(10, "a", client_id="one")
    script.run(6_000)
    assert script.last.ignored_event_ids == []
    script.beat(10, "a", client_id="one")
    script.run(7_000)
    assert len(script.last.ignored_event_ids) == 1


@pytest.mark.parametrize("generation", [None, 1])
def test_a_late_heartbeat_of_a_former_session_is_none_of_the_present_one(generation: int | None) -> None:
    script = Script(session_timeouts_ms={"kafka": 1_000})
    script.snapshot(5_000, generation, {"a": ["t"], "b": ["t"]})
    script.run(6_000)
    script.beat(3_000, "a")
    script.run(9_000)
    if generation is not None:
        script.snapshot(9_100, 2, {"b": ["t"]})
    script.run(9_200)
    assert "a 5000.." in " ".join(script.sessions())
    assert [one.split(" ", 3)[3] for one in script.decided()[1:]] == (["member_gone:a"] if generation else [])


def test_a_generation_names_the_join_and_the_subscription_that_it_shows() -> None:
    script = Script()
    script.snapshot(10, 1, {"a": ["t"], "b": ["t"]}, strategy="range")
    script.join(15, "c", event_id="joined")
    script.beat(16, "b", subscriptions=("t", "u"), event_id="subscribed")
    script.snapshot(20, 2, {"a": ["t"], "b": ["t", "u"], "c": ["t"]}, strategy="range")
    script.run(30)
    causes = {(one.kind, one.member_id, one.event_id) for one in script.rebalances[1].triggers}
    assert causes == {("member_joined", "c", "joined"), ("subscription_changed", "b", "subscribed")}


def test_a_member_that_its_coordinator_removed_has_expired() -> None:
    script = Script()
    script.queues(0, "t", 2)
    script.join(10, "a")
    script.join(10, "b")
    script.leave(1_000, "b", how="expired", reason="broker log: heartbeat expiration")
    script.run(2_000)
    assert script.decided()[-1] == "1000 #2 2->1 session_expired:b"
    assert script.sessions() == ["a 10..", "b 10..1000 expired"]


def test_where_generations_are_reported_the_removal_is_the_cause_of_the_next() -> None:
    script = Script()
    script.queues(0, "t", 2)
    members = {"a": ["t"], "b": ["t"], "c": ["t"]}
    script.snapshot(10, 1, members, strategy="range")
    script.leave(1_000, "b", how="expired", reason="broker log: heartbeat expiration")
    script.leave(1_001, "c", reason="broker log: LeaveGroup")
    script.snapshot(1_200, 2, {"a": ["t"]}, strategy="range")
    script.run(2_000)
    assert script.decided()[-1] == "1200 #2 3->1 session_expired:b member_left:c"
    details = [trigger.detail for trigger in script.rebalances[-1].triggers]
    assert details == ["broker log: heartbeat expiration", "broker log: LeaveGroup"]
    assert script.sessions() == ["a 10..", "b 10..1000 expired", "c 10..1001 left"]
    assert script.rebalances[-1].pause_ms == 200


def test_a_late_poll_ends_no_member_with_a_heartbeat_in_the_same_batch() -> None:
    script = Script("rocketmq")
    script.poll(1_000, "a", "b")
    script.queues(5_000, "t", 1)
    script.run(7_000)
    script.poll(3_000, "b")
    script.beat(8_000, "a")
    script.run(9_000)
    assert script.sessions() == ["a 1000..", "b 1000.."]


def test_a_departure_that_comes_after_the_expiry_it_explains_is_the_cause() -> None:
    script = Script()
    script.snapshot(1_000, 1, {"a": ["t"], "b": ["t"]})
    script.beat(2_000, "a")
    script.run(60_000)
    script.leave(4_000, "a")
    script.snapshot(62_000, 2, {"b": ["t"]})
    script.run(70_000)
    assert script.decided()[-1] == "62000 #2 2->1 member_left:a"
    assert script.sessions() == ["a 1000..4000 left", "b 1000.."]


def test_a_departure_before_the_last_heartbeat_explains_no_expiry() -> None:
    script = Script()
    script.snapshot(1_000, 1, {"a": ["t"], "b": ["t"]})
    script.beat(5_000, "a")
    script.run(60_000)
    script.leave(4_000, "a")
    script.snapshot(62_000, 2, {"b": ["t"]})
    script.run(70_000)
    assert script.decided()[-1] == "62000 #2 2->1 session_expired:a"


def test_a_static_member_that_joined_and_returned_within_the_settling_time_owned_nothing_in_the_generation_before() -> (
    None
):
    def claimed(*queue_ids: int) -> tuple[QueueRef, ...]:
        return tuple(QueueRef("t", number) for number in queue_ids)

    common = {"strategies": ("cooperative-sticky",), "session_timeout_ms": 6_000}
    script = Script(settle_ms=3_000)
    script.queues(0, "t", 6)
    script.join(1, "x", **common)
    script.leave(2, "x")
    script.join(6_000, "a", instance_id="a", **common)
    script.join(6_001, "a-2", instance_id="a", **common)
    script.join(6_252, "b", owned=claimed(2, 4), **common)
    script.join(6_502, "a-2", instance_id="a", owned=claimed(2, 3, 5), **common)
    script.run(10_000)
    assert script.decided()[-1] == "6252 #2 0->2 member_joined:a member_joined:b"
    # Both claim queue 2, neither has been in a generation: nobody keeps it yet.
    assert [line.split("..")[0].rsplit(" ", 1)[0] for line in script.spans()] == [
        "t/0 a-2",
        "t/1 b",
        "t/3 a-2",
        "t/4 b",
        "t/5 a-2",
    ]


@pytest.mark.parametrize(
    ("heartbeat_at", "timeout_ms", "expired"),
    [(4_999, 1_000, True), (4_000, 1_000, True), (3_999, 1_000, False), (3_999, 1_001, True)],
)
def test_a_late_heartbeat_of_the_session_that_a_poll_showed_first_lets_it_expire(
    heartbeat_at: int, timeout_ms: int, expired: bool
) -> None:
    script = Script(session_timeouts_ms={"kafka": timeout_ms})
    script.snapshot(5_000, None, {"a": ["t"]})
    script.run(5_500)
    script.beat(heartbeat_at, "a")
    script.run(9_000)
    assert script.sessions()[0].endswith("expired") is expired


def test_a_late_heartbeat_of_before_a_departure_is_of_the_former_session() -> None:
    script = Script()
    script.snapshot(1_000, None, {"a": ["t"]})
    script.snapshot(3_000, None, {})
    script.snapshot(5_000, None, {"a": ["t"]})
    script.run(5_500)
    script.beat(2_000, "a")
    script.run(90_000)
    assert script.sessions()[-1] == "a 5000.."


def test_what_a_member_sent_after_a_leave_that_came_late_is_a_new_session() -> None:
    script = Script("rocketmq")
    script.join(1_000, "a")
    script.join(15_000, "b")
    script.run(20_000)
    script.leave(10_000, "a")
    script.run(21_000)
    assert script.sessions()[0] == "a 1000..20000 left"
    script.beat(12_000, "a")
    script.run(22_000)
    assert "a" in script.group.members


def test_what_a_member_sent_before_it_left_a_second_time_is_no_new_session() -> None:
    script = Script("rocketmq")
    script.join(1_000, "a")
    script.leave(2_000, "a")
    script.leave(9_000, "a")
    script.run(10_000)
    script.beat(5_000, "a")
    script.run(11_000)
    assert script.group.members == {}


@pytest.mark.parametrize("departs", ["leave", "poll", "deletion"])
def test_a_departure_behind_the_newest_heartbeat_of_its_member_ends_no_session(departs: str) -> None:
    script = Script("rocketmq")
    script.beat(6_000, "a")
    script.run(10_000)
    script.beat(40_000, "a")
    script.run(60_000)  # nothing was applied to the group since 6000, but the heartbeat to its member
    if departs == "leave":
        script.leave(39_000, "a")
    elif departs == "poll":
        script.poll(39_000)
    else:
        script.delete(39_000)
    script.run(70_000)
    assert script.sessions() == ["a 6000.."]


@pytest.mark.parametrize("late", ["heartbeat", "join", "poll"])
def test_what_comes_late_of_before_the_departure_of_an_unknown_member_is_no_join(late: str) -> None:
    script = Script("rocketmq")
    script.beat(10_000, "b")
    script.leave(12_000, "a")
    script.run(20_000)
    if late == "heartbeat":
        script.beat(8_000, "a")
    elif late == "join":
        script.join(8_000, "a")
    else:
        script.snapshot(8_000, None, {"a": ["t"], "b": ["t"]})
    script.run(30_000)
    assert script.sessions() == ["b 10000.."]


def test_a_heartbeat_after_the_departure_of_an_unknown_member_is_a_join() -> None:
    script = Script("rocketmq")
    script.leave(12_000, "a")
    script.beat(12_001, "a")
    script.run(20_000)
    assert script.sessions() == ["a 12001.."]
