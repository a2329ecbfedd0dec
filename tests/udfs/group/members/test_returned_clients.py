"""Clients that departed and are back: what their generation says of it."""

from __future__ import annotations

from typing import Any

from tests.udfs.group.group_script import Script, assigned
from udfs.model.events import GroupSnapshot, MemberLeft
from udfs.model.journal import Trigger

ORDERS = {"client_id": "orders", "host": "/10.0.0.7"}
OTHER = {"client_id": "other", "host": "/10.0.0.8"}


class Story:
    """A group of ``o`` and of members whose client is ``orders``; a session timeout is 6 s."""

    def __init__(self) -> None:
        self.script = Script()
        self.script.queues(0, "t", 2)
        self.generation = 0

    def generate(self, at: int, members: dict[str, dict[str, Any]]) -> None:
        self.generation += 1
        described = {
            member_id: {"session_timeout_ms": 6_000, **fields} for member_id, fields in {"o": OTHER, **members}.items()
        }
        ids = sorted(described)
        given = assigned(**{member_id: str(number) if number < 2 else "" for number, member_id in enumerate(ids)})
        subscribed = {member_id: ["t"] for member_id in ids}
        self.script.snapshot(at, self.generation, subscribed, given, described, strategy="range")

    def depart(self, at: int, member_id: str, how: str) -> None:
        self.script.event(MemberLeft, at, member_id=member_id, how=how)

    def causes(self) -> list[Trigger]:
        return self.script.run(100_000).rebalances[-1].triggers

    def detail(self, member_id: str) -> str | None:
        (trigger,) = (cause for cause in self.causes() if cause.member_id == member_id)
        return trigger.detail


def back_after(how: str, back: dict[str, dict[str, Any]], first: dict[str, Any] | None = None) -> Story:
    story = Story()
    story.generate(1_000, {"a-1": ORDERS if first is None else first})
    story.depart(20_000, "a-1", how)
    story.generate(20_000, {})
    story.generate(32_000, back)
    return story


def test_a_client_that_is_back_under_a_new_id_hung_or_was_started_again() -> None:
    story = back_after("expired", {"a-2": ORDERS})
    assert story.detail("a-2") == (
        "its client was back 12.0 s after it expired as a-1: it hung, or its process was started again"
    )
    assert back_after("left", {"a-2": ORDERS}).detail("a-2") == "its client was back 12.0 s after it left as a-1"


def test_one_that_remembers_a_generation_or_has_its_own_id_is_the_same_process() -> None:
    remembers = back_after("expired", {"a-2": {**ORDERS, "owned": (), "owned_generation": 1}})
    assert remembers.detail("a-2") == "its client was back 12.0 s after it expired, the same process: it hung"
    own_id = back_after("expired", {"a-1": ORDERS})
    assert own_id.detail("a-1") == (
        "its client was back 12.0 s after it expired, the same process under its own id: it hung"
    )


def test_no_detail_is_given_where_several_may_be_meant_or_nothing_names_the_client() -> None:
    assert back_after("expired", {"a-2": ORDERS, "a-3": ORDERS}).detail("a-2") is None
    assert back_after("expired", {"a-2": {**ORDERS, "host": "/10.0.0.9"}}).detail("a-2") is None
    assert back_after("expired", {"a-2": {}}, first={}).detail("a-2") is None
    assert back_after("expired", {"a-2": {**ORDERS, "instance_id": "i"}}).detail("a-2") is None


def test_two_former_members_at_one_time_were_two_clients_and_one_after_the_other_is_one() -> None:
    story = Story()
    story.generate(1_000, {"a-1": ORDERS, "a-2": ORDERS})
    story.generate(20_000, {})
    story.generate(32_000, {"a-3": ORDERS})
    assert story.detail("a-3") is None
    story = Story()
    for at, members in ((1_000, ["a-1"]), (5_000, []), (9_000, ["a-2"]), (20_000, []), (32_000, ["a-3"])):
        story.generate(at, dict.fromkeys(members, ORDERS))
    assert story.detail("a-3") == "its client was back 12.0 s after it was gone as a-2"


def test_a_rebalance_that_waited_for_a_dead_member_reports_the_time() -> None:
    story = Story()
    story.generate(1_000, {"a-1": ORDERS})
    story.script.event(GroupSnapshot, 21_000, state="PreparingRebalance")
    story.depart(27_000, "a-1", "expired")
    story.generate(27_010, {"a-2": ORDERS})
    assert story.detail("a-1") == (
        "its client was back as a-2 in this rebalance, which waited 6.0 s for the dead one: a group.instance.id would"
        " have saved that"
    )
    assert story.detail("a-2") is None


def test_a_client_that_left_and_is_back_in_one_rebalance_was_started_again() -> None:
    story = Story()
    story.generate(1_000, {"a-1": ORDERS})
    story.depart(20_000, "a-1", "left")
    story.generate(20_500, {"a-2": ORDERS})
    assert story.detail("a-1") == "its client was back as a-2 in this rebalance"


def test_the_reason_of_the_coordinator_comes_first() -> None:
    story = Story()
    story.generate(1_000, {"a-1": ORDERS})
    story.script.event(MemberLeft, 20_000, member_id="a-1", how="left", reason="broker log: LeaveGroup")
    story.generate(20_500, {"a-2": ORDERS})
    assert story.detail("a-1") == "broker log: LeaveGroup; its client was back as a-2 in this rebalance"
