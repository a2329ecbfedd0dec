"""Queues for named machines only."""

from tests.udfs.strategies.groups import as_text, group
from udfs.strategies.registry import strategy


def test_pinned_queues_wait_when_no_named_machine_is_there() -> None:
    settings = {"machines": ["10.0.0.1"]}
    there = {"10.0.0.1@1": ["t"], "10.0.0.1@2": ["t"], "10.0.0.9@1": ["t"]}
    pinned = strategy("PINNED", "rocketmq")
    assert as_text(pinned(group(there, {"t": 4}, settings=settings))) == {
        "10.0.0.1@1": "t-0 t-1",
        "10.0.0.1@2": "t-2 t-3",
        "10.0.0.9@1": "",
    }
    assert as_text(pinned(group({"10.0.0.9@1": ["t"]}, {"t": 4}, settings=settings))) == {"10.0.0.9@1": ""}


def test_a_machine_with_an_address_that_begins_like_a_named_one_is_not_named() -> None:
    problem = group({"10.0.0.11@1": ["t"]}, {"t": 1}, settings={"machines": ["10.0.0.1"]})
    assert as_text(strategy("PINNED", "rocketmq")(problem)) == {"10.0.0.11@1": ""}


def test_a_whole_id_may_be_named_and_without_any_name_all_wait() -> None:
    pinned = strategy("PINNED", "rocketmq")
    there = {"10.0.0.1@1": ["t"], "10.0.0.1@2": ["t"]}
    assert as_text(pinned(group(there, {"t": 2}, settings={"machines": ["10.0.0.1@2"]}))) == {
        "10.0.0.1@1": "",
        "10.0.0.1@2": "t-0 t-1",
    }
    for machines in (None, []):
        assert not any(pinned(group(there, {"t": 2}, settings={"machines": machines})).values())
