"""Late events of sessions belong to a session, and may end one, as if they had come in order."""

from __future__ import annotations

import pytest

from tests.udfs.group.group_script import Script


def poll(script: Script, at: int, member: str, timeout_ms: int | None = None) -> None:
    script.snapshot(at, None, {member: ["t"]}, describe={member: {"session_timeout_ms": timeout_ms}})


@pytest.mark.parametrize(("sent_at", "lasted"), [(18_000, False), (18_001, True)])
def test_a_late_heartbeat_extends_an_expired_session_into_a_polled_one_which_ends_with_it(
    sent_at: int, lasted: bool
) -> None:
    script = Script("metaq")
    script.join(8_001, "a", session_timeout_ms=10_000)
    poll(script, 28_001, "a")
    script.run(30_000)
    script.beat(sent_at, "a")
    script.run(60_000)
    assert script.sessions()[0].endswith("expired") is lasted


def test_events_before_a_second_leave_do_not_belong_to_the_polled_session() -> None:
    script = Script("metaq")
    script.join(1_000, "a", session_timeout_ms=10_000)
    script.leave(30_000, "a")
    poll(script, 30_002, "a")
    script.run(33_000)
    script.beat(29_000, "a")
    script.run(90_000)
    assert script.sessions() == ["a 1000..11000 expired", "a 30002.."]


@pytest.mark.parametrize(("timeout_ms", "expired"), [(9_755, True), (9_754, False)])
def test_the_timeout_of_a_late_join_counts_although_a_newer_poll_has_another(timeout_ms: int, expired: bool) -> None:
    script = Script("rocketmq")
    poll(script, 28_010, "a", 10_000)
    script.run(30_000)
    script.join(18_255, "a", session_timeout_ms=timeout_ms)
    script.run(60_000)
    assert script.sessions()[0].endswith("expired") is expired


@pytest.mark.parametrize(("leaves_at", "is_there"), [(34_255, True), (34_257, False)])
def test_a_session_that_a_late_poll_began_begins_with_that_poll(leaves_at: int, is_there: bool) -> None:
    script = Script("rocketmq")
    script.join(36_755, "b")
    script.run(49_508)
    poll(script, 34_256, "a")
    script.run(49_600)
    script.leave(leaves_at, "a")
    script.run(49_700)
    assert ("a" in script.group.members) is is_there


def test_a_late_heartbeat_of_a_session_that_a_late_poll_began_lets_it_expire() -> None:
    script = Script("rocketmq")
    script.join(36_755, "b")
    script.run(49_508)
    poll(script, 34_256, "a")
    script.join(39_509, "a", session_timeout_ms=4_000)
    script.run(80_000)
    assert "a" not in script.group.members


def test_a_second_late_heartbeat_lengthens_a_session_that_began_late() -> None:
    script = Script("rocketmq")
    script.join(90_000, "b")
    script.run(100_000)
    script.beat(10_000, "a")
    script.run(101_000)
    script.beat(50_000, "a")
    script.run(140_000)
    assert "a" in script.group.members


@pytest.mark.parametrize("together", [True, False])
def test_a_poll_shows_a_member_that_late_events_had_expired(together: bool) -> None:
    script = Script("metaq")
    script.beat(2, "a")
    script.join(15_000, "b")
    script.run(18_208)
    script.beat(8_504, "a", session_timeout_ms=6_000)
    if not together:
        script.run(18_300)
    script.snapshot(14_999, None, {"a": ["t"], "b": ["t"]})
    script.run(60_000)
    assert "a" in script.group.members


def test_a_poll_of_before_a_departure_that_is_known_brings_no_member_back() -> None:
    script = Script("rocketmq")
    script.leave(70_504, "a")
    script.run(71_503)
    script.snapshot(70_254, None, {"a": ["t"], "b": ["t"]})
    script.run(72_000)
    assert script.sessions() == ["b 70254.."]


@pytest.mark.parametrize("bare", [True, False])
def test_a_group_that_only_a_former_member_shows_is_listed(bare: bool) -> None:
    script = Script()
    script.leave(35_000, "a")
    script.run(36_000)
    script.beat(2_503, "a", **({} if bare else {"subscriptions": ("t",)}))
    script.run(37_000)
    assert (script.row().state, script.sessions()) == ("empty", [])


@pytest.mark.parametrize("has_left", [True, False])
def test_a_static_member_whose_join_comes_after_what_it_sent_later_has_taken_its_place(has_left: bool) -> None:
    script = Script()
    script.snapshot(1_000, None, {"i-1": ["t"]}, describe={"i-1": {"instance_id": "i"}})
    if has_left:
        script.leave(6_000, "i-2")
        script.beat(6_001, "b")
    else:
        script.beat(6_000, "i-2")
    script.run(8_000)
    script.join(5_000, "i-2", instance_id="i")
    script.run(9_000)
    assert "i-1 1000..8000 replaced" in script.sessions()
    assert ("i-2" in script.group.members) is not has_left


def test_a_members_earlier_description_counts_when_a_generation_brings_it_back() -> None:
    script = Script()
    script.snapshot(500, 1, {"a": ["t"]})
    script.snapshot(7_000, 2, {})
    script.run(7_500)
    script.beat(4_500, "a", client_id="one")
    script.run(8_000)
    script.snapshot(9_000, 3, {"a": ["t"]})
    script.run(10_000)
    assert script.group.members["a"].client_id == "one"
