"""Groups that begin to commit: of which nothing was known, or nothing any more."""

from __future__ import annotations

import numpy as np
import pytest

from udfs.model.observations import UNKNOWN
from udfs.packets.packet import queue_key
from udfs.packets.progress_columns import NamedGroup, PackedNames, ProgressColumns
from udfs.shard.first_commits import beginning_groups
from udfs.shard.queue_table import QueueTable

QUEUES = [queue_key("t", None, number) for number in range(2)]


@pytest.mark.parametrize(
    ("what", "times", "is_remembered", "begins"),
    [
        ("it has committed in neither queue", [UNKNOWN, UNKNOWN], True, True),
        ("it has committed in the other queue", [UNKNOWN, 60], True, False),
        ("it has committed in this queue", [60, UNKNOWN], True, False),
        ("it has committed, and was forgotten since", [49, 49], True, True),
        ("it has committed, and nothing was known of it", [60, 60], False, True),
    ],
)
def test_a_group_begins_with_its_first_commit(what: str, times: list[int], is_remembered: bool, begins: bool) -> None:
    table = QueueTable()
    groups, keys = np.array([3, 3, 5], np.uint64), np.array([*QUEUES, QUEUES[0]], np.uint64)
    table.expect(groups, keys, 10)
    table.name(
        PackedNames.pack(
            {3: NamedGroup("g", "rocketmq"), 5: NamedGroup("other", "kafka")},
            {QUEUES[0]: ("t", None, 0), QUEUES[1]: ("t", None, 1)},
        )
    )
    rows = table.find(groups, keys)
    table.columns["times"][rows], table.applied[rows] = [*times, 60], np.array([*times, 60]) != UNKNOWN
    queues = np.array([QUEUES[0]] * 2, np.uint64)
    due = ProgressColumns.of_commits(np.array([3, 5], np.uint64), queues, np.array([100, 100]))
    numbers = np.array([0 if is_remembered else -1, 1])
    found = beginning_groups(table, due, lambda requested: numbers[: len(requested)], 50)
    assert found == ([(3, NamedGroup("g", "rocketmq"))] if begins else []), what
    polled = due._replace(commits=np.zeros(2, np.bool_))
    assert beginning_groups(table, polled, lambda requested: numbers[: len(requested)], 50) == []
