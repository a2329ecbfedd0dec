"""Topics that are made again under their names: what a target shows of them before metadata does."""

from __future__ import annotations

import pytest

from tests.udfs.group.group_script import T0
from tests.udfs.group.record_script import T_ID, U_ID, RecordScript, partitions
from udfs.group.kafka.topic_lives import TopicLives

AGAIN = "dDJ0MnQydDJ0MnQydDJ0Mg"


def made_again(queues: str, at: int = 40, *, member: str = "a") -> RecordScript:
    """Two members of ``t``, which another topic of that name takes the place of: ``a`` gets these queues of it."""
    script = RecordScript()
    script.first_member()
    script.second_member()
    script.epoch(at, 3)
    script.record(at, "target", epoch=3)
    for one, held in {"a": "", "b": "", member: queues}.items():
        script.record(at, "member_target", member_id=one, partitions=partitions(held, AGAIN))
    script.current(at + 1, "a", 2, "", "unrevoked", "0 1")
    script.current(at + 2, "b", 2, "", "unrevoked", "2 3")
    for after, one in ((3, "a"), (4, "b")):
        held = partitions(queues if one == member else "", AGAIN)
        script.record(at + after, "member_current", member_id=one, epoch=3, state="stable", partitions=held)
    return script


def test_queues_of_the_topic_before_end_as_the_records_take_them_and_those_of_the_new_one_begin() -> None:
    script = made_again("0 1 2 3").run(60)
    assert [span for span in script.spans("reported") if span.startswith("t/0")] == ["t/0 a 10..43", "t/0 a 43.."]
    assert [span for span in script.spans("reported") if span.startswith("t/2")] == [
        "t/2 a 10..30",
        "t/2 a 43..",
        "t/2 b 35..44",
    ]


@pytest.mark.parametrize("queues", ["0 1 2 3", "0 1", "0 1 2 3 4 5"])
def test_its_cause_is_there_with_as_many_queues_and_with_others(queues: str) -> None:
    script = made_again(queues)
    row = script.run(60).rebalances[2]
    count = len(queues.split())
    assert [(one.kind, one.topic, one.detail) for one in row.triggers] == [
        ("queue_count_changed", "t", f"4 -> {count}, made again")
    ]
    assert (row.queues_before, row.queues_after, row.unassigned_queues) == (4, count, 0)
    assert (row.queues_kept, row.queues_moved, row.queues_revoked, row.queues_assigned) == (0, 0, 4, count)


def test_its_target_is_computed_from_no_former_owners() -> None:
    script = RecordScript()
    script.first_member()
    script.second_member()
    fresh = {"a": "0 1", "b": "2 3"}
    script.epoch(40, 3)
    script.record(40, "target", epoch=3)
    for member, held in fresh.items():
        script.record(40, "member_target", member_id=member, partitions=partitions(held, AGAIN))
        script.record(
            45, "member_current", member_id=member, epoch=3, state="stable", partitions=partitions(held, AGAIN)
        )
    row = script.run(60).rebalances[2]
    assert (row.agrees, row.queues_assigned, row.queues_revoked) == (True, 4, 4)
    assert script.findings() == []
    assert [span for span in script.spans("computed") if span.startswith("t/0")] == ["t/0 a 10..45", "t/0 a 45.."]


def test_a_topic_that_a_target_leaves_out_is_deleted_before_metadata_shows_it() -> None:
    script = RecordScript()
    script.first_member()
    script.epoch(40, 2)
    script.target(40, 2, {"a": ""})
    script.current(41, "a", 2, "")
    script.epoch(50, 3)
    script.record(50, "target", epoch=3)
    script.record(50, "member_target", member_id="a", partitions=partitions("0 1", AGAIN))
    script.record(51, "member_current", member_id="a", epoch=3, state="stable", partitions=partitions("0 1", AGAIN))
    script.run(60)
    assert [(row.event_time - T0, row.triggers[0].detail, row.agrees) for row in script.rebalances[1:]] == [
        (41, "4 -> 0", True),
        (51, "0 -> 2, made again", True),
    ]
    assert script.findings() == []


def test_an_epoch_that_holds_the_id_of_before_is_of_the_topic_before() -> None:
    """Metadata is quicker than the coordinator's next epoch."""
    script = RecordScript()
    script.first_member()
    script.member(20, "b")
    script.epoch(20, 2)
    script.target(20, 2, {"a": "0 1", "b": "2 3"})
    script.current(21, "b", 2, "", "unreleased")
    script.queues(24, "t", 0)
    script.queues(25, "t", 6, topic_id=AGAIN)
    script.current(26, "a", 2, "0 1")
    script.current(27, "b", 2, "2 3")
    row = script.run(60).rebalances[1]
    assert (row.agrees, row.queues_after, row.unassigned_queues) == (True, 4, 0)
    assert script.findings() == []
    assert T_ID in (script.group.recorded.names if script.group.recorded else {})


def lives(ids: dict[str, str] | None) -> TopicLives:
    """The ids of ``t`` (of before, and of today) and of ``u`` have names; a target names these."""
    return TopicLives({T_ID: "t", AGAIN: "t", U_ID: "u"}, ids, frozenset())


def test_an_id_is_of_a_topic_that_exists_unless_the_target_has_another_one_for_its_name() -> None:
    again = lives({"t": AGAIN})
    assert [again.is_current(one) for one in (T_ID, AGAIN, U_ID, "nameless")] == [False, True, True, True]
    assert all(lives(None).is_current(one) for one in (T_ID, AGAIN, U_ID, "nameless"))


def test_of_what_members_have_the_topics_that_exist_are_left() -> None:
    held = {"a": (*partitions("0 1"), *partitions("0", U_ID)), "b": partitions("2", AGAIN)}
    assert lives({"t": AGAIN}).current(held) == {"a": partitions("0", U_ID), "b": partitions("2", AGAIN)}


def test_owners_are_by_name_or_else_by_id() -> None:
    held = {"a": (*partitions("0 1"), *partitions("3", "nameless")), "b": partitions("0", U_ID)}
    assert lives(None).owners(held) == {
        ("t", None, 0): ("a",),
        ("t", None, 1): ("a",),
        ("nameless", None, 3): ("a",),
        ("u", None, 0): ("b",),
    }


@pytest.mark.parametrize(
    ("ids", "without"),
    [
        ({"t": T_ID}, {"u", "v"}),
        ({"t": T_ID, "u": U_ID}, {"v"}),
        ({"t": T_ID, "nameless": "nameless"}, set()),  # it may be of any of them
        (None, set()),
    ],
)
def test_topics_that_a_target_does_not_name_had_no_queue_unless_one_of_its_ids_has_no_name(
    ids: dict[str, str] | None, without: set[str]
) -> None:
    assert lives(ids).without_queues(["t", "u", "v"]) == without
