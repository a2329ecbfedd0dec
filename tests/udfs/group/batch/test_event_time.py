"""What is remembered of a group while the events of one time are applied."""

from udfs.group.batch.event_time import BeforeEventTime
from udfs.group.state.group import Group, Member, Pending
from udfs.model.journal import Trigger


def member(member_id: str) -> Member:
    return Member(member_id=member_id, name=member_id, joined_at=0, host="before")


def test_a_member_is_kept_as_it_was_before_the_first_event_that_touches_it() -> None:
    group = Group(members={"a": member("a")})
    before = BeforeEventTime(group, 0)
    before.note_member("a")
    group.members["a"].host = "after"
    before.note_member("a")
    assert before.members == {"a": member("a")}
    assert before.objects["a"] is group.members["a"]


def test_a_member_joined_if_it_was_none_before_and_did_not_take_the_place_of_another_id() -> None:
    group = Group(members={"a": member("a")})
    before = BeforeEventTime(group, 0)
    for one in ("a", "b", "c"):
        before.note_member(one)
    before.exempt.add("c")
    assert [one for one in ("a", "b", "c", "untouched") if before.joined(one)] == ["b"]
    assert before.members["b"] is None
    assert set(before.objects) == {"a"}


def test_what_was_pending_and_written_before_is_counted() -> None:
    pending = Pending(opened_at=3, changed_at=7, triggers=[Trigger(kind="member_joined", member_id="a")])
    before = BeforeEventTime(Group(pending=pending), 5)
    assert (before.triggers, before.changed_at, before.changes) == (1, 7, 5)
    nothing = BeforeEventTime(Group(), 0)
    assert (nothing.triggers, nothing.changed_at, nothing.settings) == (0, 0, None)
