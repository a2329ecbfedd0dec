"""Dashboard: the only address that writes: it takes an annotation, for holders of a token of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from anyio.to_thread import run_sync
from fastapi import APIRouter, Request
from fastapi.responses import Response

from dashboard.api.answers import PlainJson
from dashboard.security.frame import ANNOTATIONS
from streaming.machine.logs import logger
from streaming.setup.errors import SetupError
from udfs.model.rejection import Rejection

router = APIRouter(include_in_schema=False)
_log = logger("dashboard")


class AnnotationHook(NamedTuple):
    """Where annotations go.

    Attributes:
        token: The token of this address; not empty. take: Writes an annotation, given as JSON; returns its id, or why
            it is none. Raises ``OSError`` or ``SetupError`` if it cannot be written now.
    """

    token: str
    take: Callable[[bytes], str | Rejection]


@router.post(ANNOTATIONS)
async def annotate(request: Request) -> Response:
    """Write an annotation for the job to read; it is in the tables some seconds later."""
    hook: AnnotationHook = request.app.state.annotation_hook
    # The frame has checked the token, and the length of the body.
    body = await request.body()
    try:
        outcome = await run_sync(hook.take, body)
    except (OSError, SetupError) as error:
        _log.warning("an annotation could not be written", reason=str(error))
        return PlainJson(
            {"error": True, "message": "it could not be written; the log of the server has the reason"}, 503
        )
    if isinstance(outcome, Rejection):
        return PlainJson({"error": True, "reason": outcome.reason, "message": outcome.detail}, 400)
    return PlainJson({"id": outcome}, 202)
