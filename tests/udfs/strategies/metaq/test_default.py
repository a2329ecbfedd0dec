"""MetaQ's default strategy: blocks of partitions whose names are sorted as strings."""

import msgspec

from tests.udfs.strategies.groups import as_text, group
from udfs.model.events import QueueInfo
from udfs.strategies.problem import Topic
from udfs.strategies.registry import strategy


def test_blocks_are_of_partitions_sorted_as_strings() -> None:
    answer = strategy("default", "metaq")(group({"g_a": ["t"], "g_b": ["t"]}, {"t": 12}, broker="0"))
    assert as_text(answer) == {"g_a": "t-0 t-1 t-10 t-11 t-2 t-3", "g_b": "t-4 t-5 t-6 t-7 t-8 t-9"}


def test_only_subscribers_count() -> None:
    answer = strategy("default", "metaq")(group({"a": ["t"], "b": ["u"], "c": ["t"]}, {"t": 6}))
    assert as_text(answer) == {"a": "t-0 t-1 t-2", "b": "", "c": "t-3 t-4 t-5"}


def test_the_first_ids_get_one_more_and_ids_beyond_the_partitions_none() -> None:
    default = strategy("default", "metaq")
    members = {member: ["t"] for member in "cba"}
    assert as_text(default(group(members, {"t": 4}))) == {"c": "t-3", "b": "t-2", "a": "t-0 t-1"}
    assert as_text(default(group(members, {"t": 2}))) == {"c": "", "b": "t-1", "a": "t-0"}


def test_a_partition_that_a_master_and_its_slave_name_is_one() -> None:
    queues = tuple(QueueInfo(queue_id=number, broker="0") for number in (0, 1, 0, 1))
    problem = group({"a": ["t"], "b": ["t"]}, {})
    topics = {"t": Topic(name="t", queues=queues)}
    answer = strategy("default", "metaq")(msgspec.structs.replace(problem, topics=topics))
    assert as_text(answer) == {"a": "t-0", "b": "t-1"}


def test_two_connections_of_one_id_take_the_same_block_and_the_second_has_no_owner() -> None:
    answer = strategy("default", "metaq")(group({"a": ["t"], "a#2": ["t"], "b": ["t"]}, {"t": 6}))
    assert as_text(answer) == {"a": "t-0 t-1", "a#2": "t-0 t-1", "b": "t-4 t-5"}
