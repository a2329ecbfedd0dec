"""Dashboard: pages of the predefined questions: the list, and each with its parameters, its answer and its SQL."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from dashboard.pages.listing_page import PAGE_ROWS
from dashboard.pages.page_addresses import API, RANGE, address
from dashboard.pages.page_columns import PageColumn
from dashboard.pages.page_routes import page
from dashboard.questions.answer import Answer, kept_answer, kept_total
from dashboard.questions.catalog import DIALECTS, NUMBERS, PARAMETERS, TIMES, Question, question, questions
from dashboard.questions.parameters import bounded, given_in
from dashboard.reading.listing import SINCE, UNTIL
from dashboard.reading.listing_query import BadQuestionError, refuse_others
from dashboard.reading.questions import Reading
from dashboard.reading.time_range import TimeRange
from streaming.machine.clock import now_ms

router = APIRouter(include_in_schema=False)

_KINDS = {"cluster": "cluster", "group_id": "group", "member_id": "member", "rebalance_id": "rebalance_id"}


@router.get("/questions")
def all_questions(request: Request) -> Response:
    """Show the list of questions."""
    refuse_others((key for key, _ in request.query_params.multi_items()), RANGE, "this page")
    return page(
        request, "questions.html", lambda _reading, _span: {"has_range": False, "questions": list(questions().values())}
    )


@router.get("/questions/{name}")
def one_question(request: Request, name: str) -> Response:
    """Show a question with its answer."""
    chosen = question(name)
    refuse_others((key for key, _ in request.query_params.multi_items()), (*chosen.parameters, *RANGE), chosen.name)
    texts = {name: value for name, value in request.query_params.items() if name not in RANGE}
    is_timed = {SINCE, UNTIL} <= set(chosen.parameters) and not any(texts.get(name) for name in (SINCE, UNTIL))

    def compute(reading: Reading, span: TimeRange) -> dict[str, Any]:
        try:
            given = given_in(chosen, texts, now_ms())
            if is_timed and span.is_chosen:
                given |= {SINCE: span.since_ms, UNTIL: span.until_ms}
            if not _lacks(chosen, given):
                given = bounded(chosen, given, reading.max_rows)
            found = kept_answer(reading, chosen, given) if not _lacks(chosen, given) else None
            sql = {} if found is None else {dialect: chosen.bound(dialect, given) for dialect in DIALECTS}
        except ValueError as error:
            raise BadQuestionError(str(error)) from error
        shown = {key: value for key, value in texts.items() if value}
        asked = {name: str(given[name]) for name in (SINCE, UNTIL) if name in given}
        return {
            "has_range": is_timed,
            "is_of_all_times": True,
            "question": chosen,
            "fields": [_field(each, shown) for each in chosen.parameters],
            "columns": [] if found is None else _columns(found),
            "rows": None if found is None else found.rows[:PAGE_ROWS],
            "total": 0 if found is None else kept_total(reading, chosen, given, found),
            "sql": sql,
            "data": address(f"{API}questions/{name}", shown | asked),
        }

    return page(request, "question.html", compute)


def _lacks(chosen: Question, given: dict[str, object]) -> bool:
    return any(name not in given for name in chosen.required)


def _field(name: str, texts: dict[str, str]) -> dict[str, str]:
    kind = "number" if name in NUMBERS else "text"
    hint = "2026-01-31T03:12:00Z" if name in TIMES else ""
    return {"name": name, "kind": kind, "title": PARAMETERS[name], "hint": hint, "value": texts.get(name, "")}


def _columns(found: Answer) -> list[PageColumn]:
    return [PageColumn(name, name.replace("_", " ").capitalize(), _kind(found, name)) for name in found.columns]


def _kind(found: Answer, name: str) -> str:
    if name in found.times:
        return "time"
    if name in _KINDS and (name != "group_id" or "cluster" in found.columns):
        return _KINDS[name]
    values = [row[name] for row in found.rows if row[name] is not None]
    if values and all(isinstance(value, bool) for value in values):
        return "truth"
    return "count" if values and all(isinstance(value, int | float) for value in values) else "text"
