"""Dashboard: answers to questions for the tables' current versions, computed once."""

from __future__ import annotations

from collections.abc import Mapping

from dashboard.questions.answer import Answer, answer_of, arrow_answer
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
