"""What is remembered of a group while the events of one time are applied."""

from tests.core_config import core_config
from tests.udfs.group.group_script import Topics
from udfs.group.batch.event_time import BeforeEventTime
from udfs.group.batch.history import GroupHistory
from udfs.group.state.group import Group, Member, Pending
from udfs.model.group_api import GroupInput
from udfs.model.journal import FindingClosed, MemberReplaced, Trigger


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
    for member_id in ("a", "b", "c"):
        before.note_member(member_id)
    before.exempt.add("c")
    assert [member_id for member_id in ("a", "b", "c", "untouched") if before.joined(member_id)] == ["b"]
    assert before.members["b"] is None
    assert set(before.objects) == {"a"}


def test_earlier_pending_and_written_changes_are_counted() -> None:
    pending = Pending(opened_at=3, changed_at=7, triggers=[Trigger(kind="member_joined", member_id="a")])
    before = BeforeEventTime(Group(pending=pending), 5)
    assert (before.triggers, before.changed_at, before.changes) == (1, 7, 5)
    nothing = BeforeEventTime(Group(), 0)
    assert (nothing.triggers, nothing.changed_at, nothing.settings) == (0, 0, None)


def history(group: Group) -> GroupHistory:
    facts = GroupInput(cluster="c", system="kafka", group_id="g", clock_before=None, clock=100, detected_at=0)
    return GroupHistory(group, facts, Topics(), core_config())


def test_a_view_has_what_was_written_at_this_event_time_alone() -> None:
    group_history = history(Group())
    first, second = FindingClosed(finding_id="first", closed_at=1), FindingClosed(finding_id="second", closed_at=2)
    group_history.write(1, first)
    assert group_history.changes_of_now() == [first]
    group_history.begin_event_time()
    assert group_history.changes_of_now() == []
    group_history.write(2, second)
    assert group_history.changes_of_now() == [second]


def test_spans_of_an_event_time_that_a_batch_before_wrote_are_not_there() -> None:
    group_history = history(Group(last_rebalance_at=5))
    replaced = MemberReplaced(former_member_id="a", member_id="b", instance_id=None, replaced_at=7)
    group_history.begin_spans(5)
    assert group_history.computed_spans_of_now(5) is None
    group_history.begin_spans(7)
    group_history.write(7, replaced)
    assert group_history.computed_spans_of_now(7) == [replaced]
