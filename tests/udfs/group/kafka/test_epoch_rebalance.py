"""The rebalance of one epoch: what it is compared with, and what it leaves to others."""

from __future__ import annotations

import pytest

from tests.udfs.group.group_script import T0
from tests.udfs.group.record_script import T_ID, RecordScript
from udfs.model.journal import Trigger


def test_an_epoch_is_computed_from_the_target_before_it_not_from_what_members_own() -> None:
    script = RecordScript()
    script.first_member()
    script.second_member()
    script.waiting = [one for one in script.waiting if one.event_time < T0 + 30]  # b never gets its queues
    script.delete_member(40, "b")
    script.epoch(40, 3)
    script.member(41, "c")
    script.epoch(41, 4)
    script.target(41, 4, {"a": "0 1", "c": "2 3"})
    script.current(42, "a", 4, "0 1")
    script.current(43, "c", 4, "2 3")
    script.run(60)
    rows = {row.generation: row for row in script.rebalances}
    assert {number: row.agrees for number, row in rows.items()} == {1: True, 2: True, 3: None, 4: True}
    assert (rows[3].agrees_reason, rows[3].error) == ("no_target", "overtaken by epoch 4")


def test_the_causes_name_the_events_that_described_their_members() -> None:
    script = RecordScript()
    script.first_member()
    described = script.waiting[1].event_id
    assert script.run(20).rebalances[0].triggers[1] == Trigger(kind="member_joined", member_id="a", event_id=described)


def test_a_member_that_subscribes_to_nothing_is_part_of_the_group() -> None:
    script = RecordScript()
    script.member(10, "a", ())
    script.epoch(10, 1)
    script.target(10, 1, {"a": ""})
    script.current(10, "a", 1, "")
    row = script.run(20).rebalances[0]
    assert (row.members_after, row.queues_after, row.agrees) == (1, 0, True)


def grown_with_equal_hashes(held: dict[str, str]) -> RecordScript:
    """Play a topic that grows under members whose ids have one hash; the target of the epoch after it is ``held``."""
    script = RecordScript()
    script.first_member(member="Aa")
    script.member(20, "BB")
    script.epoch(20, 2)
    script.target(20, 2, {"Aa": "0 1", "BB": "2 3"})
    script.current(21, "Aa", 2, "0 1")
    script.current(22, "BB", 2, "2 3")
    script.queues(40, "t", 5, topic_id=T_ID)
    script.epoch(41, 3)
    script.target(41, 3, held)
    for member, owned in held.items():
        script.current(42, member, 3, owned)
    return script.run(60)


@pytest.mark.parametrize(
    ("held", "agrees"),
    [
        ({"Aa": "0 1", "BB": "2 3 4"}, True),
        ({"Aa": "0 1 4", "BB": "2 3"}, True),
        ({"Aa": "0 1 3 4", "BB": "2"}, False),
    ],
)
def test_members_with_one_place_in_the_coordinators_table_are_in_any_order(held: dict[str, str], agrees: bool) -> None:
    assert grown_with_equal_hashes(held).rebalances[-1].agrees is agrees


def test_queues_that_metadata_shows_later_are_not_in_a_target() -> None:
    script = RecordScript()
    script.first_member()
    script.epoch(20, 2)
    script.target(20, 2, {"a": "0 1 2 3 4"})
    script.queues(25, "t", 6, topic_id=T_ID)
    script.current(30, "a", 2, "0 1 2 3 4")
    script.epoch(31, 3)
    script.target(31, 3, {"a": "0 1 2 3 4 5"})
    script.current(32, "a", 3, "0 1 2 3 4 5")
    assert script.run(60).decided()[1:] == ["30 #2 1->1 queue_count_changed:t", "32 #3 1->1 queue_count_changed:t"]
    assert [row.agrees for row in script.rebalances] == [True, True, True]
    assert [row.queues_after for row in script.rebalances] == [4, 5, 6]
