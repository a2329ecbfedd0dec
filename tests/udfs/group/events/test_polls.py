"""Members of a polled group: how members departed, two connections with one id."""

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
