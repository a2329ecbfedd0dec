"""Members of a polled group: how members went, two connections with one id."""

from __future__ import annotations

import pytest

from tests.udfs.group.group_script import T0, Script
from udfs.model.events import Departure


def polled(*connections: tuple[str, str | None] | str) -> Script:
    script = Script("rocketmq")
    script.queues(0, "t", 4)
    script.poll(10, *connections)
    return script


def departed(member: str, kind: str = "left", at: int | None = None, **fields: object) -> Departure:
    return Departure(member_id=member, kind=kind, at=None if at is None else T0 + at, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("departure", "trigger", "detail", "session"),
    [
        (None, "member_gone", None, "1000 absent_from_snapshot"),
        (departed("b", "left", evidence="unregistered"), "member_left", "inferred: unregistered", "1000 left"),
        (departed("b", "left", inferred=False, evidence="unregistered"), "member_left", "unregistered", "1000 left"),
        (departed("b", "expired", 900), "session_expired", "inferred", "900 expired"),
        (departed("b", "expired", 900, inferred=False), "session_expired", None, "900 expired"),
        # No member departs after the snapshot that lacks it, or before it joined.
        (departed("b", "left", 1_001, inferred=False), "member_left", None, "1000 left"),
        (departed("b", "gone", 999, evidence="answered, then closed"), "member_gone", "answered, then closed", None),
        (departed("x", "left"), "member_gone", None, "1000 absent_from_snapshot"),
        (departed("b", "left", host="h2"), "member_left", "inferred", "1000 left"),
    ],
)
def test_the_cause_of_a_departure_is_what_its_source_reports(
    departure: Departure | None, trigger: str, detail: str | None, session: str | None
) -> None:
    script = polled("a", "b")
    script.poll(1_000, "a", departures=None if departure is None else (departure,))
    script.run(2_000)
    assert script.decided()[1:] == [f"1000 #2 2->1 {trigger}:b"]
    [cause] = script.rebalances[1].triggers
    assert (cause.detail, cause.event_id) == (detail, "e3")
    assert f"b 10..{session or '999 absent_from_snapshot'}" in script.sessions()


def test_a_departure_of_a_present_member_changes_nothing() -> None:
    script = polled("a")
    script.poll(1_000, "a", departures=(departed("a"),))
    assert len(script.run(2_000).decided()) == 1


def test_a_session_never_ends_before_it_began() -> None:
    script = polled("a", "b")
    script.poll(1_000, "a", departures=(departed("b", "left", 5),))
    assert script.run(2_000).sessions() == ["a 10..", "b 10..10 left"]


def test_each_departure_is_of_one_connection() -> None:
    script = polled(("x", "h1"), ("x", "h2"), ("x", "h3"), "y")
    script.poll(1_000, "y", departures=(departed("x", "expired", host="h2"), departed("x", "left")))
    script.run(2_000)
    assert script.decided()[1:] == ["1000 #2 4->1 session_expired:x#2 member_left:x member_gone:x#3"]


def test_a_client_reported_as_departed_and_back_from_another_address_left_and_joined() -> None:
    script = polled(("x", "h1"), "y")
    script.poll(1_000, ("x", "h2"), "y", departures=(departed("x", "left", 700, host="h1"),))
    script.run(2_000)
    assert script.decided()[1:] == ["1000 #2 2->2 member_left:x member_joined:x"]
    assert script.sessions() == ["x 10..700 left", "x 1000..", "y 10.."]


def test_a_client_back_from_another_address_without_a_reported_departure_is_the_same_member() -> None:
    script = polled(("x", "h1"), "y")
    script.poll(1_000, ("x", "h2"), "y")
    script.holds(1_001, "x", [("t", 0), ("t", 1)], host="h1")
    script.run(2_000)
    assert len(script.decided()) == 1
    assert script.sessions() == ["x 10..", "y 10.."]
    assert script.group.members["x"].host == "h2"
    assert script.owners(1_500, "reported") == {"t/0": "x", "t/1": "x"}


def test_each_connection_reports_what_it_holds_itself() -> None:
    script = polled(("x", "h1"), ("x", "h2"))
    script.holds(100, "x", [("t", 0)], host="h2")
    script.holds(101, "x", [("t", 1)], host="h1")
    script.holds(102, "x", [("t", 2)], host="h9")  # of no connection that is known
    # The second one goes by the id alone once the first is gone.
    script.poll(1_000, ("x", "h2"))
    script.holds(1_001, "x", [("t", 3)], host="h5")
    script.run(2_000)
    assert script.owners(500, "reported") == {"t/0": "x#2", "t/1": "x"}
    assert script.owners(1_500, "reported") == {"t/3": "x#2"}
    assert "duplicate_ids 10..1000" in script.findings()


def test_the_cause_of_a_departure_may_come_with_a_coordinators_generation() -> None:
    script = Script()
    script.queues(0, "t", 2)
    script.snapshot(10, 1, {"a": ["t"], "b": ["t"]}, {"a": [("t", 0)], "b": [("t", 1)]}, strategy="range")
    departures = (departed("b", "left", 500, evidence="LeaveGroup seen"),)
    script.snapshot(600, 2, {"a": ["t"]}, {"a": [("t", 0), ("t", 1)]}, strategy="range", departures=departures)
    script.run(1_000)
    assert script.decided()[1:] == ["600 #2 2->1 member_left:b"]
    assert script.rebalances[1].triggers[0].detail == "inferred: LeaveGroup seen"
    # It is the first evidence that the rebalance began.
    assert script.rebalances[1].pause_ms == 100


def test_a_clients_version_is_in_its_session_and_is_no_cause() -> None:
    script = polled("a")
    script.snapshot(500, None, {"a": ["t"]}, describe={"a": {"client_version": "V5_5_0", "language": "JAVA"}})
    script.snapshot(600, None, {"a": ["t"]}, describe={"a": {"ordered": True}})
    script.run(1_000)
    assert len(script.decided()) == 1
    bodies = [change.body for change in script.changes if hasattr(change.body, "client_version")]
    assert [(body.client_version, body.language) for body in bodies] == [(None, None), ("V5_5_0", "JAVA")]
    assert script.group.members["a"].ordered is True


@pytest.mark.parametrize(
    ("system", "name", "told"),
    [
        ("rocketmq", "AVG", []),
        ("rocketmq", "AVG_BY_CIRCLE", ["500 #2 1->1 strategy_changed:a"]),
        ("metaq", "default", []),
        ("kafka", "range", ["500 #2 1->1 strategy_changed:a"]),
    ],
)
def test_a_member_that_names_the_strategy_it_was_taken_to_have_changes_nothing(
    system: str, name: str, told: list[str]
) -> None:
    script = Script(system)
    script.queues(0, "t", 4)
    script.poll(10, "a")
    script.snapshot(500, None, {"a": ["t"]}, describe={"a": {"strategies": (name,)}})
    script.run(1_000)
    assert script.decided()[1:] == told
    assert script.group.members["a"].strategies == (name,)


def test_members_whose_class_changes_allocate_by_it_from_then_on() -> None:
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
