"""The assignment of a strategy for one group size, compared with the one for the size before."""

from __future__ import annotations

import pytest

from streaming.allocation.comparison import Size, compare, compare_all, is_strategy, queue_text
from udfs.model.events import QueueRef
from udfs.strategies.registry import names


def queues(topic: str, *numbers: int) -> list[QueueRef]:
    return [QueueRef(topic=topic, queue_id=number) for number in numbers]


def test_queue_numbers_are_written_as_ranges_by_topic() -> None:
    held = [*queues("b", 9), *queues("a", 5, 0, 2, 1, 7, 8)]
    assert queue_text(held, with_topic=True) == "a: 0–2, 5, 7–8; b: 9"
    assert queue_text(queues("a", 3), with_topic=False) == "3"
    assert queue_text([], with_topic=True) == "-"


def test_idle_members_and_unassigned_queues_are_counted() -> None:
    crowded = compare("rocketmq.AVG", Size(members=5, queues=3), None)
    assert (crowded.spread, crowded.idle_members, crowded.unassigned_queues, crowded.moved) == (1, 2, 0, None)
    # By its definition: a member takes the queues of its own number, and queues beyond all members have no owner.
    unlisted = compare("rocketmq.CONFIG", Size(members=2, queues=3), None)
    assert (unlisted.idle_members, unlisted.unassigned_queues) == (2, 3)


def test_queues_of_every_topic_count() -> None:
    found = compare("kafka.range", Size(members=2, queues=1, topics=3), None)
    assert (found.spread, found.idle_members, found.unassigned_queues) == (3, 1, 0)
    assert {queue.topic for queue in found.assignment["consumer-1"]} == {"topic-0", "topic-1", "topic-2"}


def test_only_queues_that_had_another_owner_have_moved() -> None:
    # Range: 6 = 3 + 3 becomes 2 + 2 + 2: queue 2 to the second member, 4 and 5 to the third.
    assert compare("kafka.range", Size(3, 6), Size(2, 6)).moved == 3
    assert compare("kafka.range", Size(2, 7), Size(2, 6)).moved == 1
    assert compare("kafka.range", Size(2, 6), Size(2, 6)).moved == 0


def test_a_cooperative_move_is_followed_to_its_end() -> None:
    found = compare("kafka.cooperative-sticky", Size(3, 6), Size(2, 6))
    assert (found.moved, found.unassigned_queues, found.spread) == (2, 0, 0)


def test_members_sort_as_their_numbers_do_at_both_sizes() -> None:
    assert compare("rocketmq.AVG", Size(10, 10), Size(9, 10)).moved == 9
    assert list(compare("rocketmq.AVG", Size(10, 10), None).assignment)[-1] == "room1@10"


def test_a_strategy_that_fails_is_a_row_with_its_error() -> None:
    found = compare("kafka.absent", Size(1, 1), None)
    assert found.error is not None
    assert "absent" in found.error
    assert found.assignment == {}


def test_every_registered_strategy_is_compared_in_the_order_of_names() -> None:
    assert [found.strategy for found in compare_all(Size(2, 4), None)] == list(names())


@pytest.mark.parametrize(
    ("name", "exists"),
    [("kafka.range", True), ("rocketmq.AVG", True), ("range", False), ("kafka.AVG", False), ("pulsar.range", False)],
)
def test_a_strategy_exists_under_its_qualified_name(name: str, exists: bool) -> None:
    assert is_strategy(name) is exists
