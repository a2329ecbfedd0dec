"""The sticky assignors with different subscriptions, at their edges: as Kafka 4.1.1 answered."""

from collections.abc import Mapping

import pytest

from tests.kit.differential import our_answer
from tests.kit.golden import edges
from tests.udfs.strategies.groups import claiming
from udfs.model.errors import StrategyError
from udfs.strategies.registry import strategy


@pytest.mark.parametrize("edge", edges("sticky-general"), ids=lambda edge: edge.why)
def test_the_answer_at_the_edge_is_that_of_the_real_class(edge) -> None:
    assert our_answer(edge.case).held == edge.held


@pytest.mark.parametrize(
    ("members", "topics", "reason"),
    [
        (
            {"a": ("v", 1, "t-3 v-0 t-1"), "b": ("t", None, ""), "c": ("u t", 2, "t-1 u-0")},
            {"t": 2, "u": 2, "v": 2},
            "a previous owner",
        ),
        (
            {
                "a": ("u", 2, "t-5"),
                "b": ("u t", None, ""),
                "c": ("t v", 2, "v-5"),
                "d": ("u t", 1, "u-3 v-5 u-0 u-1"),
            },
            {"t": 1, "u": 1, "v": 1},
            "a candidate",
        ),
    ],
)
def test_a_member_without_a_part_in_the_moves_is_a_null_pointer_where_it_is_needed(
    members: Mapping[str, tuple[str, int | None, str]], topics: Mapping[str, int], reason: str
) -> None:
    with pytest.raises(StrategyError, match=reason) as failed:
        strategy("sticky", "kafka")(claiming(members, topics))
    assert failed.value.code == "null_pointer"
