"""What a group writes in one batch: numbered changes, and findings once."""

from __future__ import annotations

from tests.core_config import core_config
from tests.udfs.group.group_script import T0, Topics
from udfs.group.batch.findings import Found
from udfs.group.batch.history import GroupHistory
from udfs.group.state.group import Group
from udfs.model.group_api import GroupInput
from udfs.model.journal import FindingClosed, FindingOpened, GroupChanged, GroupRemoved


def history(group: Group) -> GroupHistory:
    """Open a group for a batch whose clock is ``T0 + 1000``."""
    facts = GroupInput(cluster="c", system="kafka", group_id="g", clock_before=None, clock=T0 + 1_000, detected_at=0)
    return GroupHistory(group, facts, Topics(), core_config())


def test_changes_are_numbered_within_the_groups_history() -> None:
    group_history = history(Group(number=7))
    group_history.write(T0, GroupRemoved())
    group_history.write(T0 + 1, GroupRemoved())
    assert [change.number for change in group_history.output.changes] == [8, 9]
    group_history.note_number()
    assert group_history.group.number == 9


def test_a_finding_is_written_when_it_opens_and_when_it_closes_and_not_in_between() -> None:
    group_history = history(Group())
    found = Found(severity="warning", message="m", advice="a")
    for at, what in ((1, found), (2, found), (3, None), (4, None)):
        group_history.set_finding("flapping", what, T0 + at)
    [opened, closed] = [change.body for change in group_history.output.changes]
    assert isinstance(opened, FindingOpened)
    assert isinstance(closed, FindingClosed)
    assert (opened.finding_id, opened.opened_at - T0, closed.closed_at - T0) == (closed.finding_id, 1, 3)
    assert group_history.group.findings == {}


def test_the_row_of_a_group_is_written_when_it_differs_from_the_last_one() -> None:
    group_history = history(Group())
    for at, members in ((1, 2), (2, 2), (3, 1)):
        group_history.write_row(T0 + at, GroupChanged(system="kafka", state="stable", members=members))
    rows = [(change.event_time - T0, change.body) for change in group_history.output.changes]
    assert [(at, body.members) for at, body in rows if isinstance(body, GroupChanged)] == [(1, 2), (3, 1)]
    assert len(rows) == 2
