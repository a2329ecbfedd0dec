"""RocketMQ's two arithmetic strategies: published examples."""

from tests.udfs.strategies.groups import group
from udfs.strategies.registry import strategy


def numbers(name: str, queues: int, members: str) -> list[list[int]]:
    """Return the queue numbers, from 1, that each member gets of one topic."""
    answer = strategy(name, "rocketmq")(group({member: ["t"] for member in members}, {"t": queues}))
    return [[held.queue_id + 1 for held in answer[member]] for member in members]


def test_averagely_assigns_eight_queues_to_three_consumers_in_blocks() -> None:
    assert numbers("rocketmq.AVG", 8, "abc") == [[1, 2, 3], [4, 5, 6], [7, 8]]


def test_by_circle_assigns_eight_queues_to_three_consumers_one_by_one() -> None:
    assert numbers("rocketmq.AVG_BY_CIRCLE", 8, "abc") == [[1, 4, 7], [2, 5, 8], [3, 6]]


def test_five_queues_make_three_and_two_and_seven_make_four_and_three() -> None:
    assert [len(held) for held in numbers("rocketmq.AVG", 5, "ab")] == [3, 2]
    assert [len(held) for held in numbers("rocketmq.AVG", 7, "ab")] == [4, 3]


def test_more_consumers_than_queues_leave_the_last_ones_idle() -> None:
    assert numbers("rocketmq.AVG", 2, "abc") == [[1], [2], []]
