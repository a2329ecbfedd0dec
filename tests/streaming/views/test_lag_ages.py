"""The lag of a group in words."""

from __future__ import annotations

import pytest

from streaming.tables.schema import Row
from streaming.views.lag_ages import group_lag_text


def _waiting(queue_id: int, lag: int | None, lag_ms: int | None, lag_min_ms: int | None) -> Row:
    place = {"topic": "t", "broker": None, "queue_id": queue_id}
    return {**place, "lag": lag, "lag_ms": lag_ms, "lag_min_ms": lag_min_ms, "is_left_over": False}


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([], "lag is not known"),
        ([_waiting(0, None, None, None)], "lag is not known"),
        ([_waiting(0, 0, 0, 0)], "0 messages wait"),
        ([_waiting(0, 1, 1_000, 900), _waiting(1, 4, None, 61_000)], "5 messages wait, the oldest for >61 s"),
        ([_waiting(0, 9, 2_000, 1_000), _waiting(0, 9, 2_000, 1_000)], "9 messages wait, the oldest for 2 s"),
        (
            [_waiting(0, 3, None, None), _waiting(1, None, None, None)],
            "3 messages wait; of 1 queue the lag is not known",
        ),
        (
            [_waiting(0, 3, 1_000, 0), _waiting(1, 50, 9_000, 0) | {"is_left_over": True}],
            "3 messages wait, the oldest for 1 s",
        ),
        (
            [_waiting(0, 3, 1_000, 0) | {"deleted_in_ms": 7_260_000}, _waiting(1, 9, 9_000, 0)],
            "12 messages wait, the oldest for 9 s, the first is deleted in about 2 h 1 min",
        ),
    ],
)
def test_the_lag_of_a_group_is_the_sum_in_messages_and_the_largest_in_time(rows: list[Row], text: str) -> None:
    assert group_lag_text(rows) == text
