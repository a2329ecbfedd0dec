"""Records of a topic that are gone, from the offsets that were read and those that the broker has."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from streaming.collectors.kafka.topic_reader import Missed, missed


@pytest.mark.parametrize(
    ("read", "bounds", "answered", "found", "is_behind"),
    [
        ({0: 10}, {0: (0, 10)}, {}, [], False),
        ({0: 10}, {0: (10, 10)}, {}, [], False),
        ({0: 10}, {0: (11, 11)}, {}, [Missed(0, 10, 11)], True),
        ({0: 10}, {0: (30, 90)}, {0: 20}, [Missed(0, 20, 30)], True),
        ({0: 10}, {0: (30, 90)}, {0: 30}, [], True),
        ({0: 30}, {0: (30, 90)}, {0: 30}, [], False),
        # A partition that is new to the reader begins at 0.
        ({0: 10}, {0: (0, 10), 1: (0, 5)}, {}, [], False),
        ({0: 10}, {0: (0, 10), 1: (2, 5)}, {}, [Missed(1, 0, 2)], True),
        # The partition was made again, or truncated: it ends before what was read.
        ({0: 10}, {0: (0, 4)}, {}, [Missed(0, 0, 4, 10)], True),
        ({0: 10}, {0: (0, 4)}, {0: -5}, [], True),
        ({0: 4}, {0: (0, 4)}, {0: -5}, [], False),
        ({0: 4}, {0: (6, 9)}, {0: -5}, [Missed(0, 4, 6)], True),
        ({1: 4, 0: 4}, {1: (5, 9), 0: (6, 9)}, {}, [Missed(0, 4, 6), Missed(1, 4, 5)], True),
    ],
)
def test_records_neither_read_nor_reported_are_missing(
    read: Mapping[int, int],
    bounds: Mapping[int, tuple[int, int]],
    answered: Mapping[int, int],
    found: list[Missed],
    is_behind: bool,
) -> None:
    assert missed(read, bounds, answered) == (found, is_behind)
