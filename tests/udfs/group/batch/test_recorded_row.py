"""What the row of a group shows of the coordinator's records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.udfs.group.state.test_record_fold import current, folded, member, record
from udfs.group.batch.recorded_row import MAX_SHOWN, with_epochs
from udfs.group.state.record_fold import fold
from udfs.group.state.recorded_group import RecordedGroup
from udfs.model.events import TopicPartitions
from udfs.model.journal import TOPOLOGY_NOT_READY, GroupChanged, ReconcilingMember


def test_the_row_has_epochs_and_state_beside_its_last_rebalance() -> None:
    group = folded(member(1), record(1, "group", epoch=7), record(1, "target", epoch=6), current(1, 6, "stable"))
    row = with_epochs(group, GroupChanged(system="kafka", state="stable", generation=6, members=1))
    assert (row.state, row.generation, row.epoch, row.assignment_epoch) == ("assigning", 6, 7, 6)
    assert (row.protocol, row.members, row.waits) == ("consumer", 1, None)
    assert row.member_epochs == []
    assert row.reconciling == [ReconcilingMember("a", None, None, None, 6, "stable", (), (), ())]


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


def streams_row(current: Mapping[str, Mapping[str, Any]], targets: Mapping[str, str], epoch: int = 2) -> GroupChanged:
    """Return the row of a streams group whose target is of epoch 2: what each member has, and what it shall have."""
    group = RecordedGroup("streams")
    records = [record(1, "group", epoch=epoch), record(1, "target", epoch=2)]
    for name, fields in current.items():
        records.append(member(1, name))
        records.append(record(1, "member_current", member_id=name, **fields))
    for name, tasks in targets.items():
        held = (TopicPartitions("0", tuple(map(int, tasks.split()))),) if tasks else ()
        records.append(record(1, "member_target", member_id=name, partitions=held))
    fold(group, [(group_record, f"e{place}") for place, group_record in enumerate(records)])
    return with_epochs(group, GroupChanged(system="kafka", state="not_followed"))


def tasks(*numbers: int) -> tuple[TopicPartitions, ...]:
    return (TopicPartitions("0", numbers),)


def test_the_row_of_a_streams_group_has_the_tasks_that_its_members_wait_for() -> None:
    giving = {"epoch": 1, "state": "unrevoked", "partitions": tasks(0), "revoking": tasks(1)}
    waiting = {"epoch": 2, "state": "unreleased", "partitions": ()}
    row = streams_row({"a": giving, "b": waiting}, {"a": "0", "b": "1"})
    assert (row.state, row.protocol) == ("not_followed", "streams")
    assert row.waits == "a has yet to revoke subtopology 0-1; b waits for subtopology 0-1 of a"
    standby = {"epoch": 2, "state": "unreleased", "partitions": tasks(1)}
    has_all = {"epoch": 2, "state": "stable", "partitions": tasks(0)}
    assert streams_row({"a": has_all, "b": standby}, {"a": "0", "b": "1"}).waits == "b waits for tasks"
    assert streams_row({"a": has_all, "b": has_all | {"partitions": tasks(1)}}, {"a": "0", "b": "1"}).waits is None


def test_a_streams_group_without_any_task_in_its_target_is_not_ready() -> None:
    idle = {"epoch": 2, "state": "stable", "partitions": ()}
    assert streams_row({"a": idle, "b": idle}, {"a": "", "b": ""}).waits == TOPOLOGY_NOT_READY
    assert streams_row({"a": idle}, {}).waits == TOPOLOGY_NOT_READY
    # The target of the newest epoch is to come; there is nobody.
    assert streams_row({"a": idle}, {}, epoch=3).waits is None
    assert streams_row({}, {}).waits is None
