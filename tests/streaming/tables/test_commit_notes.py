"""Notes of commits are read as they were written; other writers may have left other notes."""

from __future__ import annotations

import pytest

from streaming.tables.commit_notes import BatchTimes, batch_times_of, note_of


def test_a_note_is_read_back() -> None:
    times = BatchTimes(2, 30, {"addBatch": 5})
    assert batch_times_of(note_of(times)) == times


@pytest.mark.parametrize("note", [None, "", "by hand", "{}", '{"batches":"1"}', '{"batches":0,"events":0,"ms":{}}', 7])
def test_other_notes_are_ignored(note: object) -> None:
    assert batch_times_of(note) is None
