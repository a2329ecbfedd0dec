"""The sticky assignors with equal subscriptions, at their edges: as Kafka 4.1.1 answered."""

import pytest

from tests.kit.differential import our_answer
from tests.kit.golden import edges
from tests.udfs.strategies.groups import group
from udfs.model.errors import StrategyError
from udfs.strategies.registry import strategy


@pytest.mark.parametrize("edge", edges("sticky-constrained"), ids=lambda edge: edge.why)
def test_the_answer_at_the_edge_is_that_of_the_real_class(edge) -> None:
    assert our_answer(edge.case).held == edge.held


def test_partitions_that_no_member_may_take_are_an_error_as_in_the_real_class() -> None:
    # A claim of t-4, which does not exist any more, takes the room of t-0.
    with pytest.raises(StrategyError, match="1 partitions are left, 0 members may have one more") as failed:
        strategy("sticky", "kafka")(group({"a": ["t"]}, {"t": 1}, owned={"a": ["t-4"]}))
    assert failed.value.code == "illegal_state"
