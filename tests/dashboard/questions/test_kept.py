"""An answer is computed once for a version of the tables."""

from __future__ import annotations

from pathlib import Path

from dashboard.questions.answer import answer, kept_answer, kept_total
from dashboard.questions.catalog import question
from dashboard.reading.questions import Reading
from streaming.settings.model import Dashboard
from streaming.views.reader import Reader


def test_an_answer_is_kept_for_its_parameters(story_tables: Path, settings: Dashboard) -> None:
    reading = Reading.of(story_tables, settings)
    chosen = question("most-rebalances")
    first = kept_answer(reading, chosen, {})
    held = reading.cache.held_bytes
    assert kept_answer(reading, chosen, {}) == first == answer(chosen, Reader(story_tables), reading.queries, {})
    assert reading.cache.held_bytes == held > 0
    assert kept_answer(reading, chosen, {"cluster": "elsewhere"}).rows == []
    assert reading.cache.held_bytes > held


def test_all_rows_are_counted_where_a_limit_leaves_some_out(story_tables: Path, settings: Dashboard) -> None:
    reading = Reading.of(story_tables, settings)
    chosen = question("causes-of-a-group")
    whole = kept_answer(reading, chosen, {})
    assert kept_total(reading, chosen, {}, whole) == len(whole.rows) > 1
    cut = kept_answer(reading, chosen, {"limit": 1})
    assert (len(cut.rows), kept_total(reading, chosen, {"limit": 1}, cut)) == (1, len(whole.rows))
