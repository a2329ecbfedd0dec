"""Topics that are made again under their names: what a target shows of them before metadata does."""

from __future__ import annotations

import pytest

from tests.udfs.group.record_script import T_ID, U_ID, partitions
from udfs.group.kafka.topic_lives import TopicLives

AGAIN = "dDJ0MnQydDJ0MnQydDJ0Mg"


def lives(ids: dict[str, str] | None) -> TopicLives:
    """The ids of ``t`` (of before, and of today) and of ``u`` have names; a target names these."""
    return TopicLives({T_ID: "t", AGAIN: "t", U_ID: "u"}, ids, frozenset())


def test_an_id_is_of_a_topic_that_exists_unless_the_target_has_another_one_for_its_name() -> None:
    again = lives({"t": AGAIN})
    assert [again.is_current(topic_id) for topic_id in (T_ID, AGAIN, U_ID, "nameless")] == [False, True, True, True]
    assert all(lives(None).is_current(topic_id) for topic_id in (T_ID, AGAIN, U_ID, "nameless"))


def test_members_keep_only_topics_that_exist() -> None:
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
