"""RocketMQ's ring of hashes."""

import pytest

from tests.udfs.strategies.groups import as_text, group, shares_of_two_rooms
from udfs.model.errors import StrategyError
from udfs.strategies.registry import strategy

consistent_hash = strategy("CONSISTENT_HASH", "rocketmq")


def test_queues_of_two_rooms_are_assigned_as_by_the_real_class() -> None:
    assert shares_of_two_rooms(consistent_hash, {}) == ["a2 b1", "b0", "a4 b2 b3 b4 b5", "a0 a1 a3 a5"]


def test_ten_points_of_an_id_are_what_is_taken_without_a_setting() -> None:
    assert shares_of_two_rooms(consistent_hash, {"virtual_nodes": 10}) == shares_of_two_rooms(consistent_hash, {})
    assert shares_of_two_rooms(consistent_hash, {"virtual_nodes": 11}) != shares_of_two_rooms(consistent_hash, {})


def test_without_points_no_id_gets_anything() -> None:
    assert as_text(consistent_hash(group({"a": ["t"]}, {"t": 4}, settings={"virtual_nodes": 0}))) == {"a": ""}


def test_a_second_connection_of_an_id_doubles_its_points_and_both_take_the_same_queues() -> None:
    twice = group({"a": ["t"], "a#2": ["t"], "b": ["t"]}, {"t": 40})
    held = consistent_hash(twice)
    assert held["a"] == held["a#2"]
    # Twenty points of the id a beside ten of b: the second connection continues the numbers of the first.
    once = consistent_hash(group({"a": ["t"], "b": ["t"]}, {"t": 40}))
    assert set(held["b"]) < set(once["b"])


@pytest.mark.parametrize(
    ("virtual_nodes", "code"),
    [(-1, "illegal_argument"), ("10", "illegal_setting"), (1_000_001, "illegal_setting"), (500_001, "illegal_setting")],
)
def test_a_number_of_points_that_cannot_be_is_an_error(virtual_nodes: object, code: str) -> None:
    with pytest.raises(StrategyError) as failed:
        consistent_hash(group({"a": ["t"], "b": ["t"]}, {"t": 1}, settings={"virtual_nodes": virtual_nodes}))
    assert failed.value.code == code
