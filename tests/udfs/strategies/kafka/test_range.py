"""Range by racks, at its edges: as Kafka 4.1.1 answered."""

import pytest

from tests.kit.differential import our_answer
from tests.kit.golden import edges


@pytest.mark.parametrize("edge", edges("range"), ids=lambda edge: edge.why)
def test_the_answer_at_the_edge_is_that_of_the_real_class(edge) -> None:
    assert our_answer(edge.case).held == edge.held
