"""Round robin, with equal and unequal subscriptions."""

from tests.udfs.strategies.groups import as_text, group
from udfs.strategies.registry import strategy


def test_unequal_subscriptions_give_the_example_of_kafkas_documentation() -> None:
    answer = strategy("roundrobin", "kafka")(
        group({"C0": ["t0"], "C1": ["t0", "t1"], "C2": ["t0", "t1", "t2"]}, {"t0": 1, "t1": 2, "t2": 3})
    )
    assert as_text(answer) == {"C0": "t0-0", "C1": "t1-0", "C2": "t1-1 t2-0 t2-1 t2-2"}


def test_equal_subscriptions_continue_over_the_topics() -> None:
    answer = strategy("roundrobin", "kafka")(group({"C0": ["t0", "t1"], "C1": ["t0", "t1"]}, {"t0": 3, "t1": 3}))
    assert as_text(answer) == {"C0": "t0-0 t0-2 t1-1", "C1": "t0-1 t1-0 t1-2"}


def test_the_pointer_continues_behind_the_last_subscriber_that_got_one() -> None:
    # t1 ends with b; c does not subscribe to t2, so the circle begins again with a.
    members = {"a": ["t1", "t2"], "b": ["t1", "t2"], "c": ["t1"]}
    answer = strategy("roundrobin", "kafka")(group(members, {"t1": 2, "t2": 3}))
    assert as_text(answer) == {"a": "t1-0 t2-0 t2-2", "b": "t1-1 t2-1", "c": ""}


def test_topics_come_in_the_order_of_the_leaders_library() -> None:
    topics = {"\uffff": 1, "\U0001f600": 1}
    members = {"a": list(topics), "b": list(topics)}
    java = strategy("roundrobin", "kafka")(group(members, topics))
    assert as_text(java) == {"a": "\U0001f600-0", "b": "\uffff-0"}
    library = strategy("roundrobin", "kafka")(group(members, topics, settings={"library": "librdkafka-2.0"}))
    assert as_text(library) == {"a": "\uffff-0", "b": "\U0001f600-0"}
