"""What is remembered of a group while the events of one time are applied."""

from tests.core_config import core_config
from tests.udfs.group.group_script import Topics
from udfs.group.batch.event_time import BeforeEventTime
from udfs.group.batch.history import GroupHistory
from udfs.group.state.group import Group, Member
from udfs.group.state.writing import assign
from udfs.model.group_api import GroupInput
from udfs.model.journal import MemberReplaced


def member(member_id: str) -> Member:
    return Member(member_id=member_id, name=member_id, joined_at=0, host="before")


def test_a_member_is_kept_as_it_was_before_the_first_event_that_touches_it() -> None:
    group = Group(members={"a": member("a")})
    before = BeforeEventTime(group)
    before.note_member("a")
    assign(group.members["a"], host="after")
    before.note_member("a")
    before.note_member("b")
    assert before.members == {"a": member("a"), "b": None}


def test_a_member_that_joined_and_took_another_id_is_new_under_both() -> None:
    group = Group(members={"a": member("a")})
    before = BeforeEventTime(group)
    before.note_member("b")
    before.rename("b", "c")
    assert (before.members, before.exempt, before.renamed) == ({"b": None, "c": None}, set(), {})
    assign(group, members={"d": group.members["a"]})
    before.rename("a", "d")
    assert (before.exempt, before.renamed) == ({"a", "d"}, {"d": "a"})
    assert before.described("d") == member("a")


def history(group: Group) -> GroupHistory:
    facts = GroupInput(cluster="c", system="kafka", group_id="g", clock_before=None, clock=100, detected_at=0)
    return GroupHistory(group, facts, Topics(), core_config())


def test_spans_of_an_event_time_that_a_batch_before_wrote_are_not_there() -> None:
    group_history = history(Group(last_rebalance_at=5))
    replaced = MemberReplaced(former_member_id="a", member_id="b", instance_id=None, replaced_at=7)
    group_history.begin_spans(5)
    assert group_history.computed_spans_of_now(5) is None
    group_history.begin_spans(7)
    group_history.write(7, replaced)
    assert group_history.computed_spans_of_now(7) == [replaced]
