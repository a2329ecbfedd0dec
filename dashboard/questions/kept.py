"""Dashboard: answers to questions for the tables' current versions, computed once."""

from __future__ import annotations

from collections.abc import Mapping

from dashboard.questions.answer import Answer, answer_of, arrow_answer, row_count
from dashboard.questions.catalog import Question
from dashboard.reading.questions import Reading


def kept_answer(reading: Reading, question: Question, given: Mapping[str, object]) -> Answer:
    """Return the answer to a question, see ``answer``.

    Raises:
        ValueError, QueryTimeoutError: As ``answer``.
    """
    values = tuple(question.values(given).items())
    found = reading.kept(
        ("question", question.name, values),
        list(question.tables),
        lambda: arrow_answer(question, reading.tables, reading.queries, given),
    )
    return answer_of(found)


def kept_total(reading: Reading, question: Question, given: Mapping[str, object], found: Answer) -> int:
    """Return how many rows an answer would have without a limit.

    Args:
        given: Of the answer, with its limit.

    Raises:
        QueryTimeoutError: As ``answer``.
    """
    values = question.values(given)
    if len(found.rows) < int(values.pop("limit")):
        return len(found.rows)
    counted = reading.kept(
        ("rows of a question", question.name, tuple(values.items())),
        list(question.tables),
        lambda: row_count(question, reading.tables, reading.queries, given),
    )
    count: int = counted["n"][0].as_py()
    return count
