"""Range by racks, at its edges: as Kafka 4.1.1 answered."""

import msgspec
import pytest

from tests.kit.differential import our_answer
from tests.kit.golden import edges
from tests.udfs.strategies.groups import as_text, group, in_racks
from udfs.strategies.kafka.range import has_near_queues
from udfs.strategies.registry import strategy


@pytest.mark.parametrize("edge", edges("range"), ids=lambda edge: edge.why)
def test_the_answer_at_the_edge_is_that_of_the_real_class(edge) -> None:
    assert our_answer(edge.case).held == edge.held


def test_the_imbalance_grows_with_the_number_of_topics() -> None:
    for topics in (1, 2, 10):
        names = [f"t{number}" for number in range(topics)]
        answer = strategy("range", "kafka")(group({"a": names, "b": names}, dict.fromkeys(names, 3)))
        assert len(answer["a"]) - len(answer["b"]) == topics


def test_five_and_three_partitions_of_two_members_are_those_of_a_live_group() -> None:
    answer = strategy("range", "kafka")(group({"a": ["t1", "t2"], "b": ["t1", "t2"]}, {"t1": 5, "t2": 3}))
    assert as_text(answer) == {"a": "t1-0 t1-1 t1-2 t2-0 t2-1", "b": "t1-3 t1-4 t2-2"}


@pytest.mark.parametrize(
    ("brokers", "held"),
    [
        (2, ["t1-0 t1-2 t2-0 t2-2 t3-0 t4-0", "t1-1 t1-3 t2-1 t2-3 t3-1 t4-1", "t1-5 t2-5", "t1-4 t2-4"]),
        (3, ["t1-0 t1-3 t2-0 t2-3 t3-0 t4-0", "t1-1 t1-4 t2-1 t2-4 t3-1 t4-1", "t1-2 t2-2", "t1-5 t2-5"]),
    ],
)
def test_racks_of_librdkafka_are_those_of_its_own_tests(brokers: int, held: list[str]) -> None:
    # librdkafka, src/rdkafka_range_assignor.c#ut_testRackAwareAssignmentWithCoPartitioning1
    topics = {"t1": 6, "t2": 6, "t3": 2, "t4": 2}
    members = {f"consumer{number}": list(topics) for number in range(1, 5)}
    problem = group(members, topics, settings={"library": "librdkafka"})
    problem = in_racks(problem, ["r0", "r1", "r1", "r0"], brokers)
    assert [*as_text(strategy("range", "kafka")(problem)).values()] == held


def test_a_member_without_a_rack_is_near_to_nothing_where_librdkafka_assigns_topics_as_one() -> None:
    problem = in_racks(group({"a": ["t", "u"], "b": ["t", "u"]}, {"t": 2, "u": 2}), [None, "r0"], 2)
    held = {
        library: as_text(strategy("range", "kafka")(msgspec.structs.replace(problem, settings={"library": library})))
        for library in ("java-4.1", "librdkafka")
    }
    assert held["java-4.1"] == {"a": "t-0 u-0", "b": "t-1 u-1"}
    assert held["librdkafka"] == {"a": "t-1 u-1", "b": "t-0 u-0"}


@pytest.mark.parametrize(
    ("topics", "subscriptions", "held"),
    [
        ({"T1": 4, "T2": 4}, ["T1 T2", "T1 T2"], ["T1-0 T1-1 T2-2 T2-3", "T1-2 T1-3 T2-0 T2-1"]),
        ({"T1": 3, "T2": 3}, ["T1 T2", "T1 T2"], ["T1-0 T1-1 T2-2", "T1-2 T2-0 T2-1"]),
        ({"T1": 2, "T2": 2}, ["T1", "T1 T2"], ["T1-0", "T1-1 T2-0 T2-1"]),
    ],
)
def test_range_of_an_older_sarama_is_that_of_its_own_tests(
    topics: dict[str, int], subscriptions: list[str], held: list[str]
) -> None:
    # sarama 1.34.0, balance_strategy_test.go#TestBalanceStrategyRange
    members = {f"M{number}": names.split() for number, names in enumerate(subscriptions, 1)}
    problem = group(members, topics, settings={"library": "sarama-1.33"})
    assert [*as_text(strategy("range", "kafka")(problem)).values()] == held


def test_blocks_of_an_older_sarama_end_at_rounded_places() -> None:
    problem = group({member_id: ["t"] for member_id in "abc"}, {"t": 4}, settings={"library": "sarama-1.33"})
    assert sorted(as_text(strategy("range", "kafka")(problem)).values()) == ["t-0", "t-1 t-2", "t-3"]


def test_queues_are_near_where_a_member_has_the_rack_of_a_replica() -> None:
    problem = group({"a": ["t"], "b": ["t"]}, {"t": 2})
    assert has_near_queues(in_racks(problem, [None, "r1"], 2))
    assert not has_near_queues(in_racks(problem, [None, "r9"], 2))
    assert not has_near_queues(in_racks(problem, [None, None], 2))
