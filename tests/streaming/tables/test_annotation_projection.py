"""The newest version of an annotation is its row, however its versions come."""

from __future__ import annotations

import itertools

import pytest

from streaming.tables.schema import Row
from tests.streaming.tables.journals import T0, annotated
from tests.streaming.tables.projected_rows import apply_changes
from udfs.model.journal import Change

VERSIONS = [
    annotated(0, "r1", text="begun"),
    annotated(5, "r1", text="over", cluster="c2"),
    annotated(5, "r1", text="more than over"),
    annotated(3, "r1", text="under way", cluster="c1"),
    annotated(9, "r2", text="another"),
]


def texts(rows: list[Row]) -> list[tuple[str, str, int]]:
    return sorted((row["annotation_id"], row["text"], row["written_at"] - T0) for row in rows)


@pytest.mark.parametrize("order", list(itertools.permutations(VERSIONS))[::7])
@pytest.mark.parametrize("cut", [0, 1, 3])
def test_rows_do_not_depend_on_the_order_of_versions_their_repeats_and_pieces(
    order: tuple[Change, ...], cut: int
) -> None:
    rows = apply_changes("annotations", order[:cut])
    rows = apply_changes("annotations", [*order[cut:], order[0], *order[:cut]], rows)
    # Which of two versions of one time is valid does not matter, as long as it is always the same one.
    assert texts(rows) == [("r1", "over", 5), ("r2", "another", 9)]


@pytest.mark.parametrize(
    ("versions", "span"),
    [
        # The end is reported later, without the beginning.
        ([annotated(4, "r1"), annotated(9, "r1", ended=8)], (4, 8)),
        ([annotated(4, "r1"), annotated(9, "r1", ended=8), annotated(10, "r1", began=5)], (5, None)),
        ([annotated(4, "r1", began=7), annotated(9, "r1", ended=8)], (4, 8)),
        ([annotated(4, "r1", began=1), annotated(2, "r1", began=4)], (1, None)),
        ([annotated(4, "r1", began=4), annotated(2, "r1")], (4, None)),
        ([annotated(4, "r1", ended=3)], (3, 3)),
    ],
)
def test_without_a_beginning_an_annotation_begins_with_its_first_version(
    versions: list[Change], span: tuple[int, int | None]
) -> None:
    for order in itertools.permutations(versions):
        rows: list[Row] = []
        for version in order:
            rows = apply_changes("annotations", [version], rows)
        [row] = rows
        assert rows == apply_changes("annotations", order)
        assert (row["began_at"] - T0, row["ended_at"] and row["ended_at"] - T0) == span


def test_a_repeated_version_changes_no_row() -> None:
    rows = apply_changes("annotations", VERSIONS)
    assert apply_changes("annotations", VERSIONS, rows) == rows
