"""Dashboard: errors, as a page for people and as JSON for programs."""

from __future__ import annotations

from deltalake.exceptions import DeltaError
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.exceptions import HTTPException

from dashboard.reading.known_time import UnknownError
from dashboard.reading.listing_query import BadQuestionError
from dashboard.reading.queries import QueryTimeoutError
from streaming.machine.logs import logger
from streaming.stores.failure import is_unreadable, reason_of
from streaming.tables.errors import AmbiguousError, NotFoundError
from streaming.terminal.escape import printable

_STATUS: dict[type[Exception], int] = {
    BadQuestionError: 400,
    RequestValidationError: 400,
    NotFoundError: 404,
    AmbiguousError: 409,
    QueryTimeoutError: 503,
    UnknownError: 503,
}
_MAX_LENGTH = 500
_log = logger("dashboard")


def add_errors(app: FastAPI) -> None:
    """Let the application answer every error in one form."""
    for kind, status in _STATUS.items():
        app.add_exception_handler(kind, lambda request, error, status=status: _answer(request, error, status))
    for unreadable in (OSError, DeltaError):
        app.add_exception_handler(unreadable, _unreadable)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)


def _http(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return _answer(request, NotFoundError("there is no such page") if status == 404 else error, status)


def _unreadable(request: Request, error: Exception) -> Response:
    reason = reason_of(error)
    _log.warning("tables could not be read for a page", path=printable(request.url.path), reason=reason)
    return _answer(request, RuntimeError(f"the tables cannot be read: {reason}"), 503)


def _unexpected(request: Request, error: Exception) -> Response:
    if is_unreadable(error):
        return _unreadable(request, error)
    _log.error("a page failed", path=printable(request.url.path), error=repr(error))
    return _answer(request, RuntimeError("this page failed; the log of the server has the reason"), 500)


def _answer(request: Request, error: Exception, status: int) -> Response:
    if isinstance(error, RequestValidationError):
        sentence = "; ".join(f"{problem['loc'][-1]}: {problem['msg']}" for problem in error.errors())
    else:
        sentence = str(error)
    sentence = printable(sentence[:_MAX_LENGTH])
    if request.url.path.startswith(("/api/", "/v3/")):
        return JSONResponse({"error": True, "message": sentence}, status)
    text = request.app.state.templates.get_template("error.html").render(sentence=sentence, status=status)
    return HTMLResponse(text, status)
