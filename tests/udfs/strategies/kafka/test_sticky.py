"""Kafka's two sticky assignors: the examples of KIP-54 and KIP-429."""

from tests.udfs.strategies.groups import as_text, group
from udfs.strategies.registry import strategy


def test_sticky_example_one_of_kip_54_moves_only_the_partitions_of_the_member_that_left() -> None:
    topics = ["t0", "t1", "t2", "t3"]
    counts = dict.fromkeys(topics, 2)
    first = as_text(strategy("sticky", "kafka")(group(dict.fromkeys(("C0", "C1", "C2"), topics), counts)))
    assert first == {"C0": "t0-0 t1-1 t3-0", "C1": "t0-1 t2-0 t3-1", "C2": "t1-0 t2-1"}
    owned = {member: first[member].split() for member in ("C0", "C2")}
    second = as_text(strategy("sticky", "kafka")(group({"C0": topics, "C2": topics}, counts, owned=owned)))
    for member in owned:
        assert set(owned[member]) <= set(second[member].split())
    assert [len(held.split()) for held in second.values()] == [4, 4]


def test_sticky_example_two_of_kip_54_keeps_five_of_six_partitions_where_round_robin_keeps_three() -> None:
    counts = {"t0": 1, "t1": 2, "t2": 3}
    owned = {"C1": ["t1-0", "t1-1"], "C2": ["t2-0", "t2-1", "t2-2"]}
    after = as_text(
        strategy("sticky", "kafka")(group({"C1": ["t0", "t1"], "C2": ["t0", "t1", "t2"]}, counts, owned=owned))
    )
    assert after == {"C1": "t0-0 t1-0 t1-1", "C2": "t2-0 t2-1 t2-2"}


def test_a_cooperative_move_takes_two_steps() -> None:
    topics = {"t": 4}
    first = strategy("cooperative-sticky", "kafka")(
        group({"a": ["t"], "b": ["t"]}, topics, owned={"a": ["t-0", "t-1", "t-2", "t-3"]})
    )
    assert as_text(first) == {"a": "t-0 t-1", "b": ""}
    owned = {"a": ["t-0", "t-1"], "b": []}
    second = strategy("cooperative-sticky", "kafka")(group({"a": ["t"], "b": ["t"]}, topics, owned=owned))
    assert as_text(second) == {"a": "t-0 t-1", "b": "t-2 t-3"}


def test_a_partition_claimed_twice_in_one_generation_is_taken_from_both() -> None:
    owned = {"a": ["t-0", "t-1"], "b": ["t-1", "t-2"]}
    first = strategy("cooperative-sticky", "kafka")(group({"a": ["t"], "b": ["t"]}, {"t": 4}, owned=owned))
    assert "t-1" not in " ".join(as_text(first).values())
