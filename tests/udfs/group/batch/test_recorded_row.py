"""What the row of a group shows of the coordinator's records."""

from __future__ import annotations

from tests.udfs.group.state.test_record_fold import current, folded, member, record
from udfs.group.batch.recorded_row import MAX_SHOWN, with_epochs
from udfs.model.journal import GroupChanged


def test_the_row_has_epochs_and_state_beside_its_last_rebalance() -> None:
    group = folded(member(1), record(1, "group", epoch=7), record(1, "target", epoch=6), current(1, 6, "stable"))
    row = with_epochs(group, GroupChanged(system="kafka", state="stable", generation=6, members=1))
    assert (row.state, row.generation, row.epoch, row.assignment_epoch) == ("assigning", 6, 7, 6)
    assert (row.protocol, row.members, row.waits) == ("consumer", 1, None)
    assert row.member_epochs == []


def test_a_failed_strategy_stays_visible_while_members_are_stable() -> None:
    group = folded(member(1), record(1, "group", epoch=1), record(1, "target", epoch=1), current(1, 1, "stable"))
    assert with_epochs(group, GroupChanged(system="kafka", state="failed")).state == "failed"


def test_many_waiting_members_are_counted() -> None:
    names = [f"m{number:03}" for number in range(MAX_SHOWN + 5)]
    group = folded(*(member(1, name) for name in names), record(1, "group", epoch=1), record(1, "target", epoch=1))
    waits = with_epochs(group, GroupChanged(system="kafka", state="stable")).waits
    assert waits is not None
    assert waits.startswith("m000 has not taken epoch 1 over; ")
    assert waits.endswith("; 5 more")
