"""RocketMQ's configured lists of queues."""

from tests.udfs.strategies.groups import as_text, group
from udfs.strategies.registry import strategy


def test_configured_queues_may_have_two_owners_or_none() -> None:
    queues = {"a": [{"topic": "t", "queue_id": 0}, {"topic": "t", "queue_id": 1}], "b": [{"topic": "t", "queue_id": 1}]}
    problem = group({"a": ["t"], "b": ["t"]}, {"t": 4}, settings={"queues": queues})
    assert as_text(strategy("CONFIG", "rocketmq")(problem)) == {"a": "t-0 t-1", "b": "t-1"}


def test_a_configured_list_is_taken_without_an_id_too() -> None:
    problem = group({"": ["t"]}, {"t": 2}, settings={"queues": [{"topic": "t", "queue_id": 1}]})
    assert as_text(strategy("CONFIG", "rocketmq")(problem)) == {"": "t-1"}


def test_a_list_is_taken_once_by_a_member_of_several_topics_and_not_by_one_of_none() -> None:
    settings = {"queues": [{"topic": "t", "queue_id": 9}, {"topic": "t", "queue_id": 9}]}
    members = {"a": ["t", "u"], "b": ["empty", "missing"], "c": []}
    problem = group(members, {"t": 1, "u": 1, "empty": 0}, settings=settings)
    assert as_text(strategy("CONFIG", "rocketmq")(problem)) == {"a": "t-9", "b": "", "c": ""}


def test_without_a_list_a_member_gets_nothing() -> None:
    for queues in (None, {}, {"b": [{"topic": "t", "queue_id": 0}]}):
        problem = group({"a": ["t"]}, {"t": 1}, settings={"queues": queues})
        assert as_text(strategy("CONFIG", "rocketmq")(problem)) == {"a": ""}
