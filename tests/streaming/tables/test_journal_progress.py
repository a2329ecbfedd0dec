"""The progress of tables as one number: every progress comes back, and a later one has a larger number."""

from __future__ import annotations

import pytest

from streaming.tables.journal_progress import SHARES, JournalProgress, from_mark, to_mark

IN_ORDER = [
    JournalProgress(0, 3),
    JournalProgress(0, 3, 0, 2),
    JournalProgress(0, 3, 1),
    JournalProgress(3),
    JournalProgress(3, 4, 0, 5),
    JournalProgress(4),
    JournalProgress(4, 900, SHARES - 2, 6),
    JournalProgress(900),
    JournalProgress(1 << 28),
]


@pytest.mark.parametrize("progress", IN_ORDER)
def test_a_progress_comes_back_from_its_number(progress: JournalProgress) -> None:
    assert from_mark(to_mark(progress)) == progress


def test_a_later_progress_has_a_larger_number_that_delta_can_store() -> None:
    numbers = [to_mark(progress) for progress in IN_ORDER]
    assert numbers == sorted(set(numbers))
    assert numbers[-1] < 1 << 63


def test_tables_without_a_mark_are_at_the_beginning() -> None:
    assert from_mark(None) == JournalProgress()


def test_a_piece_of_any_length_begins_with_the_journal() -> None:
    assert from_mark(to_mark(JournalProgress(0, 50_000, 1, 2))) == JournalProgress(0, 50_000, 1, 2)


@pytest.mark.parametrize(
    "progress", [JournalProgress(1, 50_000), JournalProgress(1, 2, SHARES), JournalProgress(1, 2, 0, 16)]
)
def test_values_that_do_not_fit_are_refused(progress: JournalProgress) -> None:
    with pytest.raises(ValueError, match="too large"):
        to_mark(progress)
