"""Range by racks, at its edges: as Kafka 4.1.1 answered."""

import pytest

from tests.kit.differential import our_answer
from tests.kit.golden import edges
from tests.udfs.strategies.groups import as_text, group
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
