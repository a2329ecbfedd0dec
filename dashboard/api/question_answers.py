"""Dashboard: the predefined questions in the API: their list, and the answer to each."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from dashboard.api.answers import csv_answer, json_answer
from dashboard.api.contract import ERRORS, QUESTION, answered, question_parameters
from dashboard.api.routes import Format
from dashboard.questions.answer import kept_answer, kept_total
from dashboard.questions.catalog import question, questions
from dashboard.questions.parameters import bounded, given_in
from dashboard.reading.listing_query import BadQuestionError, refuse_others
from dashboard.reading.questions import Reading
from streaming.machine.clock import now_ms
from streaming.tables.errors import NotFoundError
from streaming.terminal.output import with_times

router = APIRouter(prefix="/api/v1", tags=["questions"], responses=ERRORS)


@router.get("/questions", responses=answered({"type": "object"}))
def all_questions(request: Request) -> Response:
    """Return the ready questions with their parameters and SQL."""
    refuse_others((key for key, _ in request.query_params.multi_items()), (), "the list of questions")
    rows = [
        {
            "name": question.name,
            "title": question.title,
            "explanation": question.explanation,
            "parameters": list(question.parameters),
            "sql": {str(dialect): text for dialect, text in question.texts.items()},
        }
        for question in questions().values()
    ]
    return json_answer({"rows": rows, "total": len(rows), "next_cursor": None})


def one_answer(request: Request, format: Format = "json") -> Response:  # noqa: A002 - the parameter's name
    """Return the answer to one question; its parameters are those of its entry in the list."""
    name = request.url.path.rpartition("/")[2]
    chosen = question(name)
    refuse_others((key for key, _ in request.query_params.multi_items()), (*chosen.parameters, "format"), name)
    reading: Reading = request.app.state.reading
    try:
        texts = {key: text for key, text in request.query_params.items() if key != "format"}
        given = bounded(chosen, given_in(chosen, texts, now_ms()), reading.max_rows)
        found = kept_answer(reading, chosen, given)
    except ValueError as error:
        raise BadQuestionError(str(error)) from error
    total = kept_total(reading, chosen, given, found)
    rows: Any = with_times(found.rows, found.times)
    if format == "csv":
        return csv_answer(rows, found.columns, name, total=total)
    return json_answer({"columns": found.columns, "rows": rows, "total": total, "next_cursor": None})


for _one in questions().values():
    router.add_api_route(
        f"/questions/{_one.name}", one_answer, responses=QUESTION, openapi_extra=question_parameters(_one)
    )


@router.get("/questions/{name}", include_in_schema=False)
def no_question(name: str) -> Response:
    """Refuse an unknown question."""
    raise NotFoundError(f"there is no question {name!r}; there are {', '.join(questions())}")
