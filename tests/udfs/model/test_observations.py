"""The newest observations of a queue up to a time."""

from __future__ import annotations

import pytest

from udfs.model.observations import NOT_NAMED, UNKNOWN, Newest, Observation, ReadOffsets, newest_of, undated

TWO = [(10, 100, UNKNOWN, UNKNOWN), (20, 200, UNKNOWN, UNKNOWN)]


@pytest.mark.parametrize(
    ("why", "observed", "expected"),
    [
        ("nothing", [], Newest()),
        ("the last two commits", [(5, 50, UNKNOWN, UNKNOWN), *TWO], Newest((20, 200), (10, 100))),
        ("what comes later does not count", [*TWO, (31, 300, 400, 350)], Newest((20, 200), (10, 100))),
        ("a commit that names no offset", [*TWO, (25, NOT_NAMED, UNKNOWN, UNKNOWN)], Newest(None, (20, 200))),
        ("found committed", [(5, undated(50), 90, UNKNOWN)], Newest(undated=(5, 50), end=(5, 90))),
        ("a commit tells more", [(5, undated(50), 90, UNKNOWN), TWO[0]], Newest((10, 100), end=(5, 90))),
        ("the greater end of a time", [(5, UNKNOWN, 90, UNKNOWN), (5, UNKNOWN, 80, UNKNOWN)], Newest(end=(5, 90))),
        ("the last position", [(5, UNKNOWN, UNKNOWN, 9), (6, UNKNOWN, UNKNOWN, 7)], Newest(position=(6, 7))),
    ],
)
def test_the_newest_up_to_a_time(why: str, observed: list[Observation], expected: Newest) -> None:
    assert newest_of(observed, 30) == expected, why
    assert ReadOffsets({7: observed}).newest(7, 30) == expected, why


def test_an_unknown_queue_has_no_observations() -> None:
    former = ReadOffsets({7: TWO})
    assert (former.newest(8, 30), list(former), len(former), former[7]) == (Newest(), [7], 1, TWO)
