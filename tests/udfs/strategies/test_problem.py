"""What a strategy gets: topics that name their queues once."""

import msgspec

from tests.udfs.strategies.groups import group
from udfs.model.events import QueueInfo
from udfs.strategies.problem import Topic
from udfs.strategies.registry import strategy


def test_a_topic_names_its_queues_once_in_both_orders() -> None:
    queues = [("b", 0), ("b", 1), ("a", 0), ("a", 2)]
    topic = Topic(name="t", queues=tuple(QueueInfo(queue_id=number, broker=broker) for broker, number in queues))
    assert [(ref.broker, ref.queue_id) for ref in topic.by_queue_id] == [("b", 0), ("a", 0), ("b", 1), ("a", 2)]
    assert [(ref.broker, ref.queue_id) for ref in topic.by_broker] == [("a", 0), ("a", 2), ("b", 0), ("b", 1)]
    assert topic.by_queue_id is topic.by_queue_id
    renamed = msgspec.structs.replace(topic, name="u")
    assert {ref.topic for ref in renamed.by_queue_id + renamed.by_broker} == {"u"}


def test_an_assignment_is_the_callers_own() -> None:
    problem = group({"a": ["t"], "b": ["t"]}, {"t": 4})
    for name in ("server.uniform", "server.range", "range", "roundrobin"):
        first = strategy(name, "kafka")(problem)
        kept = {member: list(queues) for member, queues in first.items()}
        for queues in first.values():
            queues.clear()
        assert strategy(name, "kafka")(problem) == kept


def test_brokers_sort_as_java_does_and_one_alone_needs_no_order() -> None:
    names = ["\uffff", "\U0001f600", "b"]
    queues = tuple(QueueInfo(queue_id=number, broker=broker) for number, broker in enumerate(names))
    # UTF-16: the surrogate pair comes before U+FFFF.
    by_broker = Topic(name="t", queues=queues).by_broker
    assert [queue.broker for queue in by_broker] == ["b", "\U0001f600", "\uffff"]
    alone = Topic(name="t", queues=(QueueInfo(queue_id=1, broker="b"), QueueInfo(queue_id=0, broker="b")))
    assert alone.by_broker is alone.by_queue_id
    assert [queue.queue_id for queue in alone.by_broker] == [0, 1]
