"""One rebalance of the story, with both sides."""

from __future__ import annotations

import pytest

from dashboard.reading.questions import Reading
from dashboard.reading.rebalance_detail import rebalance_detail
from streaming.tables.errors import NotFoundError
from tests.streaming.views.story import THIRD


@pytest.mark.parametrize("prefix", [THIRD, THIRD[:2]])
def test_members_before_and_after_computed_beside_reported(reading: Reading, prefix: str) -> None:
    found = rebalance_detail(reading, prefix)
    sides = {side.pop("member_id"): side for side in found["sides"]}
    assert sides["a"]["computed_before"] == "orders(0)"
    assert sides["a"]["computed_after"] == "-"
    assert sides["b"]["computed_before"] == "orders(1)"
    assert sides["b"]["computed_after"] == "orders(0,1)"
    assert sides["b"]["reported_after"] == "orders(1)"
    assert sides["b"]["differs"]
    assert found["changed"] == 2
    assert [move["queue_id"] for move in found["moves"]["computed"]] == [0]
    assert found["causes"][0]["host"] == "h1"


def test_an_id_that_is_not_there_is_named(reading: Reading) -> None:
    with pytest.raises(NotFoundError, match="nosuch"):
        rebalance_detail(reading, "nosuch")
