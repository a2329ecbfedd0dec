"""The time by which a removal must have happened, from the reads around it."""

from __future__ import annotations

import pytest

from streaming.collectors.metaq.read_context import ReadContext
from streaming.collectors.metaq.zk_times import TransactionTimes


@pytest.mark.parametrize(
    ("recorded", "alone", "at"),
    [
        ((), True, 100),  # the watch fired for it
        ((), False, 200),  # it fired for the first of several
        (((7, 150),), False, 150),  # a later transaction has a time
        (((7, 300),), False, 200),  # it was read before
        (((5, 150),), False, 200),
        (((5, 150),), True, 150),  # it was not before an earlier one, whatever the watch's time
        (((5, 120), (7, 180)), True, 120),
        (((5, 120), (7, 180)), False, 180),
        (((6, 170),), True, 170),
    ],
)
def test_a_removal_is_dated_between_the_recorded_transactions_around_it(
    recorded: tuple[tuple[int, int], ...], alone: bool, at: int
) -> None:
    times = TransactionTimes()
    for zxid, ms in recorded:
        times.learn(zxid, ms)
    context = ReadContext("c", noticed=100, at=200, continuous=True, settle_ms=0, times=times)
    assert context.removed_at(6, alone=alone) == at
